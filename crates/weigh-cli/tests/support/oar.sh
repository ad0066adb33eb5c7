#!/bin/bash
# A real OAR of two nodes on this machine, from Debian's packages, until a script of its user ends.
#
#   unshare --mount --propagation private bash oar.sh BASE PORT SCRIPT
#
# BASE is an empty directory below /tmp, PORT a free one for its database, SCRIPT what the user
# `weigher` runs when the nodes are alive. Everything of it is below BASE: what it has to find at
# other places is mounted over them in this mount namespace. A node is an sshd of OAR's with host
# name, process ids and /dev of its own, on an address of the loopback device.
#
# What surprised us: OAR's own clean-up of a job deletes all files of its user in /tmp; oarprint
# needs the properties host and core; a node needs a /dev that it may change; and without the
# prefix `oardocker` the cgroups of both nodes would be the same.
set -u
base=$1 port=$2 script=$3
pids=() server=""

# Everything of OAR ends here, and in its database.
finish() {
  [ -n "$server" ] && kill "$server" 2>/dev/null
  for _ in $(seq 50); do kill -0 "$server" 2>/dev/null || break; sleep 0.1; done
  for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null; done
  su postgres -c "$postgres/pg_ctl -D $base/database -w -m immediate stop" >/dev/null
  for controller in $controllers; do
    find /sys/fs/cgroup/$controller/oardocker -depth -type d -exec rmdir {} + 2>/dev/null
  done
}

controllers="cpuset cpu cpuacct devices freezer"
postgres=$(dirname "$(ls /usr/lib/postgresql/*/bin/pg_ctl | tail -n 1)")
trap finish EXIT
exec 2>>"$base/errors"

# What is changed, as copies.
chmod 755 "$base"
mkdir "$base/etc" "$base/lib" "$base/sockets"
for file in passwd group shadow; do cp -a /etc/$file "$base/$file"; done
echo "weigher:x:64999:64999::$base/home:/bin/bash" >>"$base/passwd"
echo "weigher:x:64999:" >>"$base/group"
echo "weigher:*:20000::::::" >>"$base/shadow"
chown -R 64999:64999 "$base/home"
printf '127.0.0.1 localhost %s\n127.0.0.11 n1\n127.0.0.12 n2\n' "$(hostname)" >"$base/hosts"
for file in passwd group shadow hosts; do mount --bind "$base/$file" /etc/$file; done
cp -a /etc/oar/. "$base/etc/" && mount --bind "$base/etc" /etc/oar
cp -a /var/lib/oar/. "$base/lib/" && chown -R oar "$base/lib" && mount --bind "$base/lib" /var/lib/oar
touch "$base/log" && chown oar:oar "$base/log"
sed -i 's/^my @Tmp_dir_to_clear = .*/my @Tmp_dir_to_clear = ();/' /etc/oar/job_resource_manager_cgroups.pl
for setting in "DB_PORT=$port" DB_BASE_PASSWD=oar DB_BASE_PASSWD_RO=oar "LOG_FILE=$base/log" SERVER_HOSTNAME=127.0.0.1; do
  sed -i "s#^${setting%%=*}=.*#${setting%%=*}=\"${setting#*=}\"#" /etc/oar/oar.conf
done

# The database.
mkdir "$base/database" && chown postgres "$base/database" "$base/sockets"
su postgres -c "$postgres/initdb -D $base/database -A trust && $postgres/pg_ctl -D $base/database -w \
  -l $base/sockets/log -o '-p $port -c listen_addresses=127.0.0.1 -c fsync=off \
  -c unix_socket_directories=$base/sockets' start" >/dev/null
ask() { PGPASSWORD=oar psql -q -h 127.0.0.1 -p "$port" "$@" >/dev/null; }
ask -U postgres -c "create role oar login password 'oar'" \
  -c "create role oar_ro login password 'oar'" -c "create database oar owner oar"
for part in pg_structure default_data pg_default_admission_rules; do
  ask -U oar -d oar -f /usr/lib/oar/database/$part.sql
done
ask -U oar -d oar -c "grant select on all tables in schema public to oar_ro"

# The nodes.
for controller in $controllers; do mkdir -p /sys/fs/cgroup/$controller/oardocker/{n1,n2}; done
for group in oardocker oardocker/n1 oardocker/n2; do
  for file in cpus mems; do
    cat /sys/fs/cgroup/cpuset/cpuset.$file >/sys/fs/cgroup/cpuset/$group/cpuset.$file
  done
done
node() {
  sed -e "s/^#ListenAddress 0.0.0.0/ListenAddress $2/" \
    -e '/UsePrivilegeSeparation\|^KeepAlive\|^Protocol/d' "$base/etc/sshd_config" >"$base/sshd.$1"
  cat >"$base/node.$1" <<NODE
hostname $1
mount -t tmpfs tmpfs /run && mkdir /run/sshd
dev=$base/dev.$1
mkdir \$dev && mount -t tmpfs -o mode=755 tmpfs \$dev
for name in null zero full random urandom tty ptmx; do
  touch \$dev/\$name && mount --bind /dev/\$name \$dev/\$name
done
for name in pts shm; do mkdir \$dev/\$name && mount --bind /dev/\$name \$dev/\$name; done
ln -s /proc/self/fd \$dev/fd
for name in in out err; do ln -s /proc/self/fd/\$((which++)) \$dev/std\$name; done
mount --move \$dev /dev
/usr/sbin/sshd -D -e -f $base/sshd.$1 & wait
NODE
  unshare --uts --pid --fork --kill-child --mount --mount-proc bash "$base/node.$1" \
    >"$base/sshd.$1.log" 2>&1 &
  pids+=($!)
}
node n1 127.0.0.11
node n2 127.0.0.12

# The server.
setsid /usr/sbin/Almighty >"$base/server.log" 2>&1 &
server=$!
sleep 2
{ oarproperty -c -a host; oarproperty -a core; } >/dev/null
core=0
for name in n1 n2; do
  for cpu in 0 1; do
    core=$((core + 1))
    oarnodesetting -a -h $name -p host=$name -p core=$core -p cpuset=$cpu >/dev/null
  done
done
su weigher -s /bin/bash -c "cd $base/home && $script"
