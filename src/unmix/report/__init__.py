"""Reports: verdicts as tables, figures as files, and one page that holds them all."""
