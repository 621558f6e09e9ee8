"""A server on AsyncSSH's stock classes that runs each command in a shell.

Arguments: the file of authorized keys, bytes after which it renews its keys (0: its own default), the host keys.
Prints its port when it listens, and ends when its standard input does.
"""

import asyncio
import sys

import asyncssh

CHUNK = 65536


async def carry(source, sink):
    while data := await source.read(CHUNK):
        sink.write(data)
        await sink.drain()


async def feed(process, child):
    try:
        await carry(process.stdin, child.stdin)
    except (BrokenPipeError, ConnectionResetError):
        pass
    finally:
        child.stdin.close()


async def run(process):
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_shell(process.command, stdin=pipe, stdout=pipe, stderr=pipe)
    feeding = asyncio.create_task(feed(process, child))
    await asyncio.gather(carry(child.stdout, process.stdout), carry(child.stderr, process.stderr))
    status = await child.wait()
    feeding.cancel()
    if status < 0:
        process.exit_with_signal({-9: "KILL", -15: "TERM"}[status])
    else:
        process.exit(status)


async def main(authorized_keys, rekey_bytes, *host_keys):
    options = {"rekey_bytes": int(rekey_bytes)} if int(rekey_bytes) else {}
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=list(host_keys),
        authorized_client_keys=authorized_keys,
        process_factory=run,
        encoding=None,
        **options,
    )
    print(server.get_port(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main(*sys.argv[1:]))
