"""What tests share: estimators of one network, where the default's search would only cost time."""

from functools import partial

from bayespc import BPCClassifier, BPCRegressor, presets

quick_regressor = partial(BPCRegressor, **presets.fast())
quick_classifier = partial(BPCClassifier, **presets.fast())
