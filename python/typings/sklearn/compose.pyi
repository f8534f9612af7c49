from typing import Any

class TransformedTargetRegressor:
    def __getattr__(self, name: str) -> Any: ...
