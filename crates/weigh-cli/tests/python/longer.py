"""Makes a recording longer: its rows again and again with later times, and nobody ever ends.

longer.py RECORDING ROWS: at least so many rows of processes.
"""

import os
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

recording, rows = sys.argv[1], int(sys.argv[2])
host = next(entry.path for entry in os.scandir(recording) if entry.is_dir())
streams = {name: ipc.open_stream(f"{host}/{name}").read_all() for name in os.listdir(host)}
times = streams["process.arrows"].column(0).cast(pa.int64())
piece = pc.max(times).as_py() - pc.min(times).as_py() + 1_000_000_000
pieces = -(-rows // len(times))
for name, table in streams.items():
    with ipc.new_stream(f"{host}/{name}.longer", table.schema) as stream:
        for later in range(pieces):
            moved = pc.add(table.column(0).cast(pa.int64()), later * piece)
            field = table.schema.field(0)
            stream.write_table(table.set_column(0, field, moved.cast(field.type)))
    os.rename(f"{host}/{name}.longer", f"{host}/{name}")
with open(f"{recording}/events.jsonl") as events:
    kept = [line for line in events if '"process_exit"' not in line and '"run_end"' not in line]
with open(f"{recording}/events.jsonl", "w") as events:
    events.writelines(kept)
print(len(times) * pieces)
