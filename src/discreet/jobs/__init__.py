"""A training as a person asks for it: named data, named model, named recipe, and a folder with everything in it."""
