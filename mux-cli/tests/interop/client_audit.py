"""ssh-audit's look at a client, on loopback and a port that the kernel chooses.

The program itself listens on all addresses and a given port. Prints the port, then the report of one client as JSON.
"""

import socket
import sys


class Loopback(socket.socket):
    def bind(self, address):
        if self.family != socket.AF_INET:
            raise OSError("IPv4 is enough")
        super().bind(("127.0.0.1", 0))

    def listen(self, *backlog):
        super().listen(*backlog)
        print(self.getsockname()[1], flush=True)


socket.socket = Loopback
sys.argv[1:] = ["--client-audit", "--json", "--timeout", "60"]

from ssh_audit import ssh_audit  # noqa: E402  (it has to see the socket above)

sys.exit(ssh_audit.main())
