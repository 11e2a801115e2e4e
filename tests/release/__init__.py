"""What a release consists of, built and tried as a user would: `make dist`."""
