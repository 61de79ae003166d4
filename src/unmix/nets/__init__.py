"""Networks: the papers' learners and the classifiers that they construct by hand."""
