from typing import Any

class MLPRegressor:
    def __getattr__(self, name: str) -> Any: ...

class MLPClassifier:
    def __getattr__(self, name: str) -> Any: ...
