"""Runs one command on many hosts with asyncssh, the way its documentation shows for many clients at once.

Usage: asyncssh_fleet.py HOSTS KEY KNOWN_HOSTS USER FANOUT COMMAND [COUNT], where HOSTS has a line `name address port`
a host. With COUNT, each host runs the command as often, one after the other, on one connection; the fanout is then
that of opening connections, as they are all kept.
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


async def run_again_and_again(line, gate, options, command, count):
    name, address, port = line.split()
    try:
        async with gate:
            connection = await asyncssh.connect(address, int(port), **options)
        async with connection:
            for _ in range(count):
                result = await connection.run(command)
                sys.stdout.write(f"{name}: {result.stdout}")
                if result.exit_status != 0:
                    return result.exit_status
    except (OSError, asyncssh.Error) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    return 0


async def main(hosts, key, known_hosts, user, fanout, command, count=None):
    gate = asyncio.Semaphore(int(fanout))
    # No configuration file and no agent: neither belongs to what is measured.
    options = {"username": user, "client_keys": [key], "known_hosts": known_hosts, "config": None, "agent_path": None}
    if count is None:
        task = lambda line: run(line, gate, options, command)
    else:
        task = lambda line: run_again_and_again(line, gate, options, command, int(count))
    with open(hosts, encoding="utf-8") as lines:
        results = await asyncio.gather(*(task(line) for line in lines))
    return max(results, default=0)


sys.exit(asyncio.run(main(*sys.argv[1:])))
