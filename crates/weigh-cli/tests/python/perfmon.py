"""Reads what weigh wrote as perfmon's file, and says whether perfmon would have written the same."""

import json
import sys

with open(sys.argv[1], encoding="ascii") as file:
    text = file.read()
content = json.loads(text)
# As the reader does: every host that is named has lists, all of one length.
lengths = {}
for host in content["host_names"]:
    lists = [value for value in content[host].values() if isinstance(value, list)]
    groups = [value for value in content[host].values() if isinstance(value, dict)]
    lists += [part for group in groups for part in group.values()]
    lengths[host] = sorted({len(values) for values in lists})
same = json.dumps(content, indent=4, sort_keys=True) == text
print(json.dumps({"same": same, "lengths": lengths}))
