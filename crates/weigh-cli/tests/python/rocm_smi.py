"""Asks AMD's own library whether it can begin: prints what rsmi_init answers."""

import ctypes
import sys

print(ctypes.CDLL(sys.argv[1]).rsmi_init(ctypes.c_uint64(0)))
