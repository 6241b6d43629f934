"""The built-in job types as an application, for `bullpen worker bullpen.builtin.ready:pen`.

The jobs are where `BULLPEN_STORE` says, the records where `BULLPEN_RECORDS` says.
"""

from bullpen.app import Bullpen
from bullpen.builtin.webhooks import Deliveries

pen = Bullpen()
Deliveries().declare(pen)
