"""Many runs at once on one device."""
