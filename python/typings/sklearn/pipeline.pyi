from typing import Any

class Pipeline:
    def __getitem__(self, index: Any) -> Any: ...
