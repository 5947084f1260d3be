"""A folder for each feature; `registry.FEATURES` has their names."""
