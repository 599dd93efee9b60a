# Prepares the mounts of a node, as its first process, and becomes pause. Nothing
# of this is seen outside, and all of it goes with the node.
dir=$1 pause=$2 ready=$3

mount --make-rprivate /
mount -t proc proc /proc

# containerd, its shims and the CNI plugins have fixed places below /run, and kubelet
# and CNI below /var/lib: what they write there stays in memory. Logs of pods go to
# the node's folder.
mount -t tmpfs -o mode=0755 node /run
mkdir /run/upper /run/work
mount -t overlay -o lowerdir=/var/lib,upperdir=/run/upper,workdir=/run/work node /var/lib
mkdir "$dir/log"
mount --bind "$dir/log" /var/log

# The kubelet sets these for the whole machine, unless it finds what it wants.
mkdir /run/sysctl
while read -r name value; do
	if [ -e "/proc/sys/$name" ]; then
		file=/run/sysctl/$(basename "$name")
		echo "$value" >"$file"
		mount --bind "$file" "/proc/sys/$name"
	fi
done <<-EOF
	vm/overcommit_memory 1
	vm/panic_on_oom 0
	kernel/panic 10
	kernel/panic_on_oops 1
	kernel/keys/root_maxkeys 1000000
	kernel/keys/root_maxbytes 25000000
EOF

: >"$ready"
exec "$pause"
