"""What each dataset costs through everything upstream of it, and what its end would save."""
