from simcore.api import Comparison as Comparison
from simcore.api import CriticalPath as CriticalPath
from simcore.api import Input as Input
from simcore.api import InputError as InputError
from simcore.api import Run as Run
from simcore.api import Sweep as Sweep
from simcore.api import Table as Table
from simcore.api import UsageError as UsageError
from simcore.api import compare as compare
from simcore.api import load as load
from simcore.api import sweep as sweep

__version__: str
__all__: list[str]
