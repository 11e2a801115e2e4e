"""Small mistakes put into the sources one by one, to see that tests find them: `make mutants`."""
