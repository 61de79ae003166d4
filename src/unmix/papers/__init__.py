"""The papers: their claims, the settings that decide them, their measures and figures."""
