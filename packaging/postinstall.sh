#!/bin/sh
# After install and upgrade: the user, its folder, the unit.
set -e
if ! grep -q '^rsbridge:' /etc/passwd; then
	if command -v systemd-sysusers >/dev/null 2>&1; then
		systemd-sysusers /usr/lib/sysusers.d/rsbridge.conf
	else
		useradd --system --user-group --home-dir /var/lib/rsbridge --shell /usr/sbin/nologin rsbridge
	fi
fi
mkdir -p /var/lib/rsbridge
chown rsbridge:rsbridge /var/lib/rsbridge
chmod 0700 /var/lib/rsbridge
# The file may get passwords.
chown root:rsbridge /etc/rsbridge/rsbridge.yaml
chmod 0640 /etc/rsbridge/rsbridge.yaml
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# deb: "configure OLDVERSION" is an upgrade; rpm: 2 or more are installed.
	if [ -n "$2" ] || [ "${1:-0}" -ge 2 ] 2>/dev/null; then
		systemctl try-restart rsbridge.service
	fi
fi
