"""What the claims of the patches paper measure, each as a function of the evidence."""
