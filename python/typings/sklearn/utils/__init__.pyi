from typing import Any

import numpy as np

class Bunch(dict[str, Any]):
    def __init__(self, **entries: Any) -> None: ...

def check_random_state(seed: Any) -> np.random.RandomState: ...
