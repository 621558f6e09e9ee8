"""Run from the folder above: python3 -m unittest. What hangs says where, after five minutes, and fails."""

import faulthandler

faulthandler.dump_traceback_later(300, exit=True)
