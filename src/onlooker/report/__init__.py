"""Values in, pictures and one self-contained HTML file out."""
