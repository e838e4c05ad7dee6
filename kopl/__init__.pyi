# What `import kopl` offers and where it is: read by type checkers, and by kopl/__init__.py.
from kopl.answers import published_equal as published_equal
from kopl.answers import same_answer as same_answer
from kopl.builder import find as find
from kopl.builder import find_all as find_all
from kopl.errors import ExecutionError as ExecutionError
from kopl.errors import LimitError as LimitError
from kopl.errors import ParseError as ParseError
from kopl.errors import ProgramError as ProgramError
from kopl.errors import TypingError as TypingError
from kopl.evidence import Evidence as Evidence
from kopl.executor import Executor as Executor
from kopl.executor import Limits as Limits
from kopl.executor import Result as Result
from kopl.functions import FUNCTIONS as FUNCTIONS
from kopl.program import Call as Call
from kopl.text import read as read
from kopl.text import to_json as to_json
from kopl.text import write_json as write_json
from kopl.text import write_nested as write_nested
from kopl.text import write_serialised as write_serialised
from kopl.typecheck import check as check
from kopl_base.errors import KoplError as KoplError

__version__: str
