# The little of scikit-learn, which ships no types, that bayespc uses.
