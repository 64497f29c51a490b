"""Says on which machines its tasks ran: one on each machine of the primary pool."""

import socket

import ray

import starforge

ray.init()
machines = int(ray.cluster_resources()["train"])


@ray.remote(num_cpus=0, resources={"train": 0.6})
class Member:
    def where(self) -> str:
        return socket.gethostname()


members = [Member.remote() for _ in range(machines)]
hosts = sorted(set(ray.get([member.where.remote() for member in members])))
print(f"machines {machines} hosts {len(hosts)} gpus {int(ray.cluster_resources().get('GPU', 0))}")
starforge.progress(1, 1, hosts=len(hosts))
