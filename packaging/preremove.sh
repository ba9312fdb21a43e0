#!/bin/sh
# Before a removal, not before an upgrade: deb says "remove", rpm 0.
set -e
if [ -d /run/systemd/system ] && { [ "$1" = remove ] || [ "$1" = 0 ]; }; then
	systemctl disable --now rsbridge.service
fi
