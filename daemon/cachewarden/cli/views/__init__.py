"""What commands say: from values to blocks."""
