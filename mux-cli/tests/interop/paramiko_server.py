"""A server on Paramiko's stock classes that runs each command in a shell.

Arguments: the file of authorized keys, the host keys. Prints its port when it listens, and ends when its standard
input does.
"""

import os
import socket
import subprocess
import sys
import threading

import paramiko

CHUNK = 65536


class Door(paramiko.ServerInterface):
    """Lets authorized keys in and runs what they want."""

    def __init__(self, authorized):
        self.authorized = authorized

    def get_allowed_auths(self, username):
        return "publickey"

    def check_auth_publickey(self, username, key):
        known = (key.get_name(), key.get_base64()) in self.authorized
        return paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, channel_id):
        return paramiko.OPEN_SUCCEEDED if kind == "session" else paramiko.OPEN_FAILED_UNKNOWN_CHANNEL_TYPE

    def check_channel_exec_request(self, channel, command):
        threading.Thread(target=run, args=(channel, command), daemon=True).start()
        return True


def carry(read, write):
    while data := read(CHUNK):
        write(data)


def feed(channel, child):
    try:
        carry(channel.recv, child.stdin.write)
        child.stdin.close()
    except (BrokenPipeError, ConnectionError):
        pass


def run(channel, command):
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, shell=True, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
    threading.Thread(target=feed, args=(channel, child), daemon=True).start()
    errors = threading.Thread(target=carry, args=(child.stderr.read, channel.sendall_stderr), daemon=True)
    errors.start()
    carry(child.stdout.read, channel.sendall)
    errors.join()
    status = child.wait()
    # It can't tell a signal; a shell tells it so.
    channel.send_exit_status(status if status >= 0 else 128 - status)
    channel.close()


def serve(connection, authorized, host_keys):
    transport = paramiko.Transport(connection)
    for key in host_keys:
        transport.add_server_key(key)
    try:
        transport.start_server(event=threading.Event(), server=Door(authorized))
    except (paramiko.SSHException, EOFError):
        transport.close()


def load(path):
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key_file(path)
        except paramiko.SSHException:
            pass
    raise ValueError(path)


def main(authorized_keys, *host_key_files):
    with open(authorized_keys, encoding="ascii") as lines:
        authorized = {tuple(line.split()[:2]) for line in lines}
    host_keys = [load(path) for path in host_key_files]
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    print(listener.getsockname()[1], flush=True)

    def accept():
        while True:
            serve(listener.accept()[0], authorized, host_keys)

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()
    # Threads of connections that are still open don't end by themselves.
    os._exit(0)


main(*sys.argv[1:])
