#!/bin/sh
# The state in /var/lib/rsbridge stays, also after a purge: a mirror is not lost with its program.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
