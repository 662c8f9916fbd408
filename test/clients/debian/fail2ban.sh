# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Bans and unbans in both families, and a restart, which removes all rules and writes them again.

setup() {
	touch /var/log/test.log
	cat >/etc/fail2ban/filter.d/test.conf <<'END'
[Definition]
failregex = failure from <HOST>
END
	# fail2ban-client returns before the actions ran; the last action signals that the others are done.
	cat >/etc/fail2ban/action.d/done.conf <<'END'
[Definition]
actionban = touch /run/done.ban.<ip>
actionunban = rm -f /run/done.ban.<ip>
END
	cat >/etc/fail2ban/jail.local <<'END'
[DEFAULT]
backend = polling
allowipv6 = yes
bantime = 1h
[sshd]
enabled = false
[test]
enabled = true
port = 22,80
logpath = /var/log/test.log
action = iptables-multiport[name=test, port="22,80", protocol=tcp]
         iptables-allports[name=test-all]
         done
END
	mkdir -p /run/fail2ban
}

# fail2ban's errors and warnings, which include those of iptables.
said() {
	sed -n 's/^.*\(ERROR\|WARNING\|CRITICAL\)/\1/p' /var/log/fail2ban.log | sed 's/0x[0-9a-f]* -- //; s/[0-9a-f]\{10,\}/ID/g' >&2
	: >/var/log/fail2ban.log
}
start() { fail2ban-client -x start; said; }
ban() { fail2ban-client set test banip "$1" && wait_for test -e "/run/done.ban.$1"; said; }
unban() { fail2ban-client set test unbanip "$1" && wait_for file_gone "/run/done.ban.$1"; said; }
# Banned addresses survive a restart, in a database.
restart() {
	rm -f /run/done.ban.*
	fail2ban-client -x restart && wait_for test -e /run/done.ban.192.0.2.1 && wait_for test -e /run/done.ban.2001:db8::1
	said
}
stop() { fail2ban-client stop && wait_for file_gone /run/fail2ban/fail2ban.sock; said; }

main() {
	run start start
	run ban ban 192.0.2.1
	run ban-ipv6 ban 2001:db8::1
	run ban-another ban 198.51.100.7
	run unban unban 198.51.100.7
	run restart restart
	run unban-ipv6 unban 2001:db8::1
	run stop stop
}
