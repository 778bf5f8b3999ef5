"""A job whose worker is killed once, in the middle of its work."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from epitome import fleet


class KilledOnce(fleet.Compact):
    """Kills its process at the batch with the session ``at_id``, unless the file ``mark`` exists."""

    def __init__(self, at_id: str, mark: Path, **options: Any) -> None:
        super().__init__(**options)
        self.at_id, self.mark = at_id, str(mark)

    def _columns(self, batch: pa.RecordBatch) -> dict[str, list[Any]]:
        columns = super()._columns(batch)
        if self.at_id in batch.column(self._id).to_pylist() and not os.path.exists(self.mark):
            Path(self.mark).write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return columns
