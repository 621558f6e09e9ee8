"""Runs one command on many hosts with asyncssh, the way its documentation shows for many clients at once.

Usage: asyncssh_fleet.py HOSTS KEY KNOWN_HOSTS USER FANOUT COMMAND, where HOSTS has a line `name address port` a host.
"""

import asyncio
import sys

import asyncssh


async def run(line, gate, options, command):
    name, address, port = line.split()
    async with gate:
        try:
            async with asyncssh.connect(address, int(port), **options) as connection:
                result = await connection.run(command)
        except (OSError, asyncssh.Error) as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
    sys.stdout.write(f"{name}: {result.stdout}")
    return result.exit_status


async def main(hosts, key, known_hosts, user, fanout, command):
    gate = asyncio.Semaphore(int(fanout))
    # No configuration file and no agent: neither belongs to what is measured.
    options = {"username": user, "client_keys": [key], "known_hosts": known_hosts, "config": None, "agent_path": None}
    with open(hosts, encoding="utf-8") as lines:
        results = await asyncio.gather(*(run(line, gate, options, command) for line in lines))
    return max(results, default=0)


sys.exit(asyncio.run(main(*sys.argv[1:])))
