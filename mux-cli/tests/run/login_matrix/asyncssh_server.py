"""A server on AsyncSSH with one user's keys, authority, password and answer, which writes down what it has decided.

Arguments: the file of authorized keys, with lines of authorities among them; the methods that it offers, separated by
commas; the host key. Prints its port when it listens, and ends when its standard input does. What it has decided stands
on its standard error in the words of sshd.
"""

import asyncio
import os
import sys

import asyncssh

RIGHT = "secret"


def say(words):
    print(words, file=sys.stderr, flush=True)


def name(key):
    return f"{key.get_algorithm()} {key.get_fingerprint()}"


def read(file):
    """The keys that are authorized, and the authorities."""
    plain, authorities = set(), set()
    with open(file, encoding="utf-8") as lines:
        for line in lines.read().splitlines():
            is_authority = line.startswith("cert-authority ")
            key = asyncssh.import_public_key(line.removeprefix("cert-authority "))
            (authorities if is_authority else plain).add(key.public_data)
    return plain, authorities


class Server(asyncssh.SSHServer):
    def __init__(self, authorized, methods):
        self.plain, self.authorities = read(authorized)
        self.methods = methods
        self.user = None
        self.proof = None

    def begin_auth(self, username):
        self.user = username
        return True

    def judge(self, right, proof):
        """Remembers what the user is let in with, if it is; says what it is refused for."""
        if right:
            self.proof = proof
        else:
            method, _, key = proof.partition(" ")
            say(f"Failed {method} for {self.user} from somewhere ssh2: {key}")
        return right

    def auth_completed(self):
        method, _, key = self.proof.partition(" ")
        say(f"Accepted {method} for {self.user} from somewhere ssh2: {key}")

    def connection_lost(self, exc):
        say("Connection closed")

    def public_key_auth_supported(self):
        return "publickey" in self.methods

    def validate_public_key(self, username, key):
        return self.judge(key.public_data in self.plain, f"publickey {name(key)}")

    def validate_ca_key(self, username, key):
        return self.judge(key.public_data in self.authorities, f"publickey CA {name(key)}")

    def password_auth_supported(self):
        return "password" in self.methods

    def validate_password(self, username, password):
        return self.judge(password == RIGHT, "password")

    def kbdint_auth_supported(self):
        return "keyboard-interactive" in self.methods

    def get_kbdint_challenge(self, username, lang, submethods):
        return "", "", "", [("Password: ", False)]

    def validate_kbdint_response(self, username, responses):
        return self.judge(list(responses) == [RIGHT], "keyboard-interactive")


async def run(process):
    user = process.get_extra_info("username")
    child = await asyncio.create_subprocess_shell(
        process.command, stdout=asyncio.subprocess.PIPE, env={**os.environ, "USER": user}
    )
    output, _ = await child.communicate()
    process.stdout.write(output)
    process.exit(child.returncode)


async def main(authorized, methods, host_key):
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_factory=lambda: Server(authorized, methods.split(",")),
        server_host_keys=[host_key],
        process_factory=run,
        encoding=None,
    )
    print(server.get_port(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main(*sys.argv[1:]))
