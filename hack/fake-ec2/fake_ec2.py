#!/usr/bin/env python3
"""A fake of EC2 and its neighbors, to test on: moto, and what moto lacks. README.md says what and how.

One process, one port of the loopback interface. It prints a line of JSON with its address when it is ready.
Reading order: Catalog (what is for sale), Rules (what goes wrong), Cloud (what there is), Pool and fleets,
the answers of EC2, the control endpoint, the gateway.
"""

import argparse
import base64
import copy
import datetime
import fnmatch
import heapq
import io
import json
import os
import random
import re
import sys
import threading
import time
import traceback
import urllib.parse
import uuid
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
from moto.utilities import utils as moto_utils  # noqa: E402

_load_resource = moto_utils.load_resource


def _without_instance_types(name, *rest):
    """Instance types come from the catalog; reading moto's takes a second."""
    if "instance_type_offerings" in name:
        return []
    return {} if "instance_types" in name else _load_resource(name, *rest)


moto_utils.load_resource = _without_instance_types
from moto.core.responses import ActionResult, EmptyResult  # noqa: E402
from moto.core.utils import camelcase_to_underscores  # noqa: E402
from moto.ec2.exceptions import DryRunClientError, EC2ClientError, InvalidInstanceIdError  # noqa: E402
from moto.ec2.models import amis, ec2_backends, elastic_network_interfaces, instance_types, instances  # noqa: E402
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend, Zone  # noqa: E402
from moto.ec2.models.core import TaggedEC2Resource  # noqa: E402
from moto.ec2.responses import EC2Response  # noqa: E402
from moto.ec2.utils import convert_tag_spec, filter_reservations, parse_user_data  # noqa: E402
from moto.moto_api._internal import mock_random  # noqa: E402
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app  # noqa: E402
from werkzeug.serving import make_server  # noqa: E402
from werkzeug.test import run_wsgi_app  # noqa: E402

moto_utils.load_resource = _load_resource

ACCOUNT = "123456789012"
AMAZON = "602401143452"
USER_DATA_MAX = 16384
REQUESTS_MAX = 200_000
# EC2 ends the machines of a capacity block this long before the block ends.
BLOCK_END_SECONDS = 30 * 60
SPREAD_MAX = 7
RESERVATION_FULL = "The requested reservation does not have sufficient compatible and available capacity for this request."
EVERYTHING = 10**9
OLD, NEW = "2026-05-01T00:00:00.000Z", "2026-08-01T00:00:00.000Z"
DONE = ("shutting-down", "terminated")


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def moment_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def tags_of(pairs):
    return {pair["Key"]: pair.get("Value", "") for pair in pairs or []}


def tag_list(tags):
    return [{"Key": key, "Value": value} for key, value in tags.items()]


# ---------------------------------------------------------------------------- what is for sale


def sizes(path):
    """Each size of a table with the cells of its family, which a line that begins with a colon opens."""
    family, head = "", []
    for line in path.read_text(encoding="utf-8").splitlines():
        first, *cells = line.split("\t")
        if first.startswith(":"):
            family, head = first[1:], cells + [""] * 8
        elif not line.startswith("#"):
            yield family, head, first, cells + [""] * 16


class Catalog:
    """Types, zones and prices of a region, from the tables of joiner-catalog."""

    def __init__(self, folder, region):
        lines = (folder / "zones.tsv").read_text(encoding="utf-8").splitlines()
        regions = {cells[0]: cells[1:] for cells in (line.split("\t") for line in lines if not line.startswith("#"))}
        if region not in regions:
            sys.exit(f"fake_ec2: --region {region}: not in {folder / 'zones.tsv'}; one of {', '.join(sorted(regions))}")
        self.region = region
        self.zones = {r: {r + c.split("=")[0]: c.split("=")[1] for c in cells} for r, cells in regions.items()}
        self.types = {f"{row[0]}.{row[2]}": instance_type(*row) for row in sizes(folder / "types.tsv")}
        self.withheld = []
        self.fixed = {}
        text = (folder / "prices.tsv").read_text(encoding="utf-8")
        columns = [line for line in text.splitlines() if line.startswith("#")][-1].split("\t")[1:]
        column = columns.index(region if region in columns else "us-east-1")
        self.currency = "CNY" if region.startswith("cn-") else "USD"
        self.on_demand = {}
        for family, _, size, cells in sizes(folder / "prices.tsv"):
            if cells[column]:
                self.on_demand[f"{family}.{size}"] = Decimal(cells[column])

    def offered(self, name, zone):
        is_withheld = any(fnmatch.fnmatch(name, a) and fnmatch.fnmatch(zone, b) for a, b in self.withheld)
        return name in self.types and zone in self.zones[self.region] and not is_withheld

    def price(self, capacity_type, name, zone):
        """Dollars an hour; None where there is no price."""
        fixed = self.fixed.get((capacity_type, name, zone), self.fixed.get((capacity_type, name, "*"), ""))
        if fixed != "":
            return fixed
        price = self.on_demand.get(name)
        if capacity_type != "spot" or price is None:
            return price
        if "spot" not in self.types[name]["SupportedUsageClasses"]:
            return None
        # The model of joiner-catalog, so that a plan made offline and the fake agree.
        digest = 0xCBF29CE484222325
        for byte in f"{name}/{zone}".encode():
            digest = (digest ^ byte) * 0x100000001B3 % 2**64
        exact = int(price * 10**9) * (2800 + digest % 2701)
        return Decimal((exact + 50_000_000) // 100_000_000).scaleb(-5)


def instance_type(family, head, size, cells):
    """A line of the table as DescribeInstanceTypes tells it."""
    arch, maker, family_flags, gpu_maker, gpu_name, gpu_mib, chip_maker, chip_name = head[:8]
    vcpus, mib, hypervisor, mhz, cards, ipv4, _, ebs, network, flags, efa, disk, gpus, chips, cores = cells[:15]
    vcpus, mib, mhz, ipv4, ebs, network, efa, disk, gpus, chips, cores = (
        int(cell or 0) for cell in (vcpus, mib, mhz, ipv4, ebs, network, efa, disk, gpus, chips, cores)
    )
    each, _, count = cards.partition("*")
    cards = [int(each)] * int(count) if count else [int(card) for card in cards.split(",")]
    threads = 1 if arch == "arm64" or vcpus < 2 else 2
    speed = f"{network / 1000:g} Gigabit" if network else "Moderate"
    strategies = [name for flag, name in zip("cps", ("cluster", "partition", "spread")) if flag in family_flags]
    makers = {"intel": "Intel", "amd": "AMD", "aws": "AWS", "nvidia": "NVIDIA", "habana": "Habana", "qualcomm": "Qualcomm"}
    told = {
        "InstanceType": f"{family}.{size}",
        "CurrentGeneration": True,
        "FreeTierEligible": f"{family}.{size}" in ("t2.micro", "t3.micro"),
        "SupportedUsageClasses": ["on-demand"] * ("o" in family_flags) + ["spot"] * ("s" in flags),
        "SupportedRootDeviceTypes": ["ebs"],
        "SupportedVirtualizationTypes": ["hvm"],
        "BareMetal": size.startswith("metal"),
        "ProcessorInfo": {
            "SupportedArchitectures": ["x86_64" if arch == "amd64" else arch],
            "SupportedFeatures": ["nested-virtualization"] * ("v" in flags),
        },
        "VCpuInfo": {"DefaultVCpus": vcpus, "DefaultCores": vcpus // threads, "DefaultThreadsPerCore": threads},
        "MemoryInfo": {"SizeInMiB": mib},
        "InstanceStorageSupported": disk > 0,
        "EbsInfo": {"EbsOptimizedSupport": "default" if ebs else "unsupported", "EncryptionSupport": "supported"},
        "NetworkInfo": {
            "NetworkPerformance": speed,
            "MaximumNetworkInterfaces": sum(cards),
            "MaximumNetworkCards": len(cards),
            "DefaultNetworkCardIndex": 0,
            "NetworkCards": [
                {"NetworkCardIndex": ix, "NetworkPerformance": speed, "MaximumNetworkInterfaces": card}
                for ix, card in enumerate(cards)
            ],
            "Ipv4AddressesPerInterface": ipv4,
            "Ipv6AddressesPerInterface": ipv4,
            "Ipv6Supported": True,
            "EnaSupport": "required" if "a" in flags else "unsupported",
            "EfaSupported": efa > 0,
            "EncryptionInTransitSupported": "e" in family_flags,
        },
        "PlacementGroupInfo": {"SupportedStrategies": strategies},
        "HibernationSupported": False,
        "BurstablePerformanceSupported": family.startswith("t"),
        "DedicatedHostsSupported": True,
        "AutoRecoverySupported": True,
        "SupportedBootModes": ["uefi"] if arch == "arm64" else ["legacy-bios", "uefi"],
        "NitroEnclavesSupport": "supported" if "e" in flags else "unsupported",
    }
    if maker:
        told["ProcessorInfo"]["Manufacturer"] = makers[maker]
    if mhz:
        told["ProcessorInfo"]["SustainedClockSpeedInGhz"] = mhz / 1000
    if hypervisor:
        told["Hypervisor"] = {"n": "nitro", "x": "xen"}[hypervisor]
    if ebs:
        bandwidth = {"BaselineBandwidthInMbps": ebs, "MaximumBandwidthInMbps": ebs}
        told["EbsInfo"]["EbsOptimizedInfo"] = bandwidth
    if efa:
        told["NetworkInfo"]["EfaInfo"] = {"MaximumEfaInterfaces": efa}
    if disk:
        nvme = "required" if "n" in flags else "unsupported"
        disks = [{"SizeInGB": disk, "Count": 1, "Type": "ssd"}]
        told["InstanceStorageInfo"] = {"TotalSizeInGB": disk, "Disks": disks, "NvmeSupport": nvme}
    if gpu_name:
        name, memory = gpu_name.upper().replace("-", " "), {"SizeInMiB": int(gpu_mib or 0)}
        gpu = {"Name": name, "Manufacturer": makers[gpu_maker], "Count": gpus, "MemoryInfo": memory}
        told["GpuInfo"] = {"Gpus": [gpu], "TotalGpuMemoryInMiB": gpus * memory["SizeInMiB"]}
    if chips:
        name = chip_name.replace("-", " ").title()
        told["InferenceAcceleratorInfo"] = {"Accelerators": [{"Name": name, "Manufacturer": makers[chip_maker], "Count": chips}]}
        if cores:
            device = {"Name": name, "Count": chips, "CoreInfo": {"Count": cores // chips, "Version": 2}}
            told["NeuronInfo"] = {"NeuronDevices": [device]}
    return told


# ---------------------------------------------------------------------------- what goes wrong


class Bad(Exception):
    """A request to the control endpoint that cannot be served."""


class Rules:
    """Rules that come and go at run time. Patterns choose what a rule is about; `share` of the matching cases
    (drawn from the seed, in their order), the first `times` of them, `after` so many, for `seconds`."""

    LIMITS = ("share", "times", "after", "seconds")

    def __init__(self, what, seed, patterns, rest):
        self.what, self.seed, self.patterns = what, seed, patterns
        self.keys = {"id", *patterns, *rest, *self.LIMITS}
        self.rules, self.made = [], 0

    def add(self, rule):
        unknown = sorted(set(rule) - self.keys)
        if unknown:
            raise Bad(f"a {self.what} has no {unknown[0]!r}; it has {', '.join(sorted(self.keys))}")
        self.made += 1
        rule = {"id": f"{self.what}-{self.made}", **rule, "seen": 0, "fired": 0}
        rule["_draw"] = random.Random(f"{self.seed}/{self.made}")
        rule["_until"] = time.monotonic() + rule.get("seconds", EVERYTHING)
        self.rules.append(rule)
        return rule["id"]

    def remove(self, name=None):
        kept = [rule for rule in self.rules if name and rule["id"] != name]
        if name and len(kept) == len(self.rules):
            raise Bad(f"there is no {self.what} {name!r}; there are {', '.join(r['id'] for r in kept) or 'none'}")
        self.rules = kept

    def about(self, facts):
        """The rules that are about these facts and have time left."""
        for rule in self.rules:
            hits = all(fnmatch.fnmatchcase(str(facts[p]), str(rule.get(p, "*"))) for p in self.patterns)
            if hits and time.monotonic() < rule["_until"]:
                yield rule

    def fires(self, rule):
        rule["seen"] += 1
        if rule["seen"] <= rule.get("after", 0) or rule["fired"] >= rule.get("times", EVERYTHING):
            return False
        if rule["_draw"].random() >= rule.get("share", 1):
            return False
        rule["fired"] += 1
        return True

    def told(self):
        return [{key: value for key, value in rule.items() if key[0] != "_"} for rule in self.rules]


# Status and code by protocol (EC2, other query services, JSON services), and the message.
FAULTS = {
    "throttle": ((503, "RequestLimitExceeded"), (400, "Throttling"), (400, "ThrottlingException"), "Rate exceeded"),
    "expired": ((400, "RequestExpired"), (403, "ExpiredToken"), (400, "ExpiredTokenException"), "The security token has expired"),
    "unauthorized": (
        (403, "UnauthorizedOperation"), (403, "AccessDenied"), (400, "AccessDeniedException"),
        "You are not authorized to perform this operation.",
    ),
    "internal": ((500, "InternalError"), (500, "InternalFailure"), (500, "InternalServerError"), "An internal error has occurred"),
    "unavailable": ((503, "Unavailable"), (503, "ServiceUnavailable"), (503, "ServiceUnavailableException"), "Come back later"),
}
FAULT_KINDS = (*FAULTS, "error", "latency", "lost", "refused")


# ---------------------------------------------------------------------------- what there is


class Cloud:
    """Everything that moto does not keep, and the world at the start."""

    def __init__(self, args, catalog):
        self.args, self.catalog, self.lock = args, catalog, threading.RLock()
        self.settings = {"boot_seconds": 1.0, "shutdown_seconds": 1.0, "list_delay_seconds": 0.0}
        rest = ("kind", "dry_run", "contains", "code", "status", "message", "milliseconds")
        self.faults = Rules("fault", args.seed, ("service", "action"), rest)
        rest = ("code", "message", "free", "score")
        self.shortages = Rules("shortage", args.seed, ("type", "zone", "capacity_type"), rest)
        self.tokens, self.timers, self.n_timers = {}, [], 0
        self.reservations, self.groups, self.statuses, self.shifts = {}, {}, {}, []
        self.requests, self.n_requests = deque(maxlen=REQUESTS_MAX), 0
        self.log = open(args.log, "a", encoding="utf-8") if args.log else None
        self.began = time.monotonic()
        self.market = Market(self)
        self.seed_world()

    @property
    def ec2(self):
        return ec2_backends[ACCOUNT][self.args.region]

    # -- time

    def later(self, seconds, act):
        self.n_timers += 1
        heapq.heappush(self.timers, (time.monotonic() + seconds, self.n_timers, act))

    def settle(self):
        """Does what has come due. Every request begins with it, so nothing need run on its own."""
        while self.timers and self.timers[0][0] <= time.monotonic():
            heapq.heappop(self.timers)[2]()

    # -- the world

    def seed_world(self):
        from moto.eks.models import eks_backends
        from moto.iam.models import iam_backends
        from moto.sqs.models import sqs_backends

        mock_random.seed(self.args.seed)
        region, name = self.args.region, self.args.cluster
        discovery = {f"kubernetes.io/cluster/{name}": "shared", "karpenter.sh/discovery": name}
        vpc = self.ec2.create_vpc("192.168.0.0/16")
        subnets, groups = {}, {}
        for ix, zone in enumerate(list(self.catalog.zones[region])[:3]):
            for tier, block, more in (("private", f"192.168.{32 * ix}.0/19", discovery), ("public", f"192.168.{128 + 4 * ix}.0/22", {})):
                subnet = self.ec2.create_subnet(vpc.id, block, availability_zone=zone)
                subnet.add_tags({"Name": f"{tier}-{zone}", "tier": tier, **more})
                subnet.map_public_ip_on_launch = tier == "public"
                subnets[f"{tier}-{zone}"] = subnet.id
        for role, more in (("cluster", discovery), ("node", discovery), ("other", {})):
            group = self.ec2.create_security_group(f"{name}-{role}", f"{role} of {name}", vpc_id=vpc.id)
            group.add_tags({"Name": f"{name}-{role}", **more})
            groups[role] = group.id
        roles = [f"KarpenterNodeRole-{name}", f"OtherNodeRole-{name}"]
        partition = "aws-cn" if region.startswith("cn-") else "aws-us-gov" if "-gov-" in region else "aws"
        self.iam = iam_backends[ACCOUNT][partition]
        for role in roles:
            self.iam.create_role(role, "{}", "/", None, "", [], "3600")
        self.sqs = sqs_backends[ACCOUNT][region]
        self.sqs.create_queue(name, {})
        eks = eks_backends[ACCOUNT][region]
        network = {"vpcId": vpc.id, "clusterSecurityGroupId": groups["cluster"], "subnetIds": list(subnets.values())}
        arn = f"arn:{partition}:iam::{ACCOUNT}:role/{roles[0]}"
        self.cluster = eks.create_cluster(name, arn, network, version=self.args.kubernetes_version)
        endpoint = self.args.endpoint or f"https://{name.upper()}.gr7.{region}.eks.amazonaws.com"
        self.change_cluster(endpoint, self.args.certificate_authority, service_cidr="10.100.0.0/16")
        self.world = {
            "account": ACCOUNT, "region": region, "cluster": name, "queue": name, "vpc": vpc.id, "subnets": subnets,
            "security_groups": groups, "roles": roles, "zones": self.catalog.zones[region],
        }
        self.seed_images(self.args.kubernetes_version)
        for arch, created in (("x86_64", OLD), ("x86_64", NEW), ("arm64", NEW)):
            name = f"my-image-{arch}-{created[:10]}"
            self.image({"name": name, "architecture": arch, "created": created, "tags": {"team": "platform", "arch": arch}})

    def change_cluster(self, endpoint=None, certificate_authority=None, version=None, service_cidr=None, status=None):
        held = self.cluster
        held.endpoint, held.status = endpoint or held.endpoint, status or held.status
        if certificate_authority:
            held.certificate_authority = {"data": certificate_authority}
        if service_cidr:
            family = "ipv6" if ":" in service_cidr else "ipv4"
            held.kubernetes_network_config = {f"service{family.replace('ip', 'Ip')}Cidr": service_cidr, "ipFamily": family}
        if version:
            held.version = version
            self.seed_images(version)

    def seed_images(self, k):
        """The images of EKS for a version of Kubernetes, an old and a new one of each, and their parameters."""
        eks, minor = f"/aws/service/eks/optimized-ami/{k}", int(k.split(".")[1])
        for created in (OLD, NEW):
            day, is_new = created[:10].replace("-", ""), created == NEW

            def add(name, arch, folder, pinned, latest, platform=None):
                paths = [f"{folder}/{pinned}/image_id"] + [f"{folder}/{latest}/image_id"] * is_new
                self.image({"name": name, "architecture": arch, "created": created, "owner": AMAZON, "platform": platform, "parameters": paths})

            for arch, variants in (("x86_64", ("standard", "nvidia", "neuron")), ("arm64", ("standard", "nvidia"))):
                for variant in variants:
                    name = f"amazon-eks-node-al2023-{arch}-{variant}-{k}-v{day}"
                    add(name, arch, f"{eks}/amazon-linux-2023/{arch}/{variant}", name, "recommended")
            if minor <= 32:
                for infix, suffix, arch in (("", "", "x86_64"), ("-arm64", "-arm64", "arm64"), ("-gpu", "-gpu", "x86_64")):
                    name = f"amazon-eks{infix}-node-{k}-v{day}"
                    add(name, arch, f"{eks}/amazon-linux-2{suffix}", name, "recommended")
            version = "1.48.0" if is_new else "1.45.0"
            for arch in ("x86_64", "arm64"):
                for variant in ("", "-nvidia"):
                    name = f"bottlerocket-aws-k8s-{k}{variant}-{arch}-v{version}-{day}"
                    add(name, arch, f"/aws/service/bottlerocket/aws-k8s-{k}{variant}/{arch}", version, "latest")
            for year in ("2019", "2022") + ("2025",) * (minor >= 35):
                title = f"Windows_Server-{year}-English-Core-EKS_Optimized-{k}"
                folder = "/aws/service/ami-windows-latest"
                add(f"{title}-{created[:10].replace('-', '.')}", "x86_64", folder, f"{title}-{day}", title, "windows")

    def image(self, spec):
        """Adds or replaces an image; its id follows from its name unless it is given."""
        name = spec["name"]
        ident = spec.get("id") or f"ami-0{uuid.uuid5(uuid.NAMESPACE_URL, name).hex[:16]}"
        owner = spec.get("owner", ACCOUNT)
        ami = amis.Ami(
            self.ec2, ident, name=name, description=name, owner_id=owner, owner_alias="amazon" if owner == AMAZON else None,
            public=owner == AMAZON, virtualization_type="hvm", architecture=spec.get("architecture", "x86_64"),
            creation_date=moment_of(spec.get("created") or stamp(now())), platform=spec.get("platform"), hypervisor="xen",
            root_device_type="ebs", root_device_name="/dev/xvda", region_name=self.args.region, tags=spec.get("tags"),
            state=spec.get("state", "available"),
        )
        ami.deprecation_time = spec.get("deprecated")
        self.ec2.amis[ident] = ami
        self.set_parameters({path: ident for path in spec.get("parameters", [])})
        return ident

    def set_parameters(self, values):
        from moto.ssm.models import Parameter, ssm_backends

        held = ssm_backends[ACCOUNT][self.args.region]._parameters
        for name, value in values.items():
            if value is None:
                held.pop(name, None)
            else:
                held[name].append(Parameter(ACCOUNT, name, value, "String", None, None, None, now().timestamp(), len(held[name]) + 1, "text"))

    # -- machines

    def all(self):
        return [i for reservation in self.ec2.reservations.values() for i in reservation.instances]

    def machine(self, ident):
        for instance in self.all():
            if instance.id == ident:
                return instance
        raise Bad(f"there is no machine {ident!r}: GET /_fake/machines lists them")

    def told(self, i):
        """A machine as the control endpoint tells it."""
        lifecycle = getattr(i, "instance_lifecycle", None)
        place = i.placement
        return {
            "id": i.id, "type": i.instance_type, "zone": i.availability_zone, "state": i.state, "subnet": i.subnet_id,
            "image": i.image_id, "capacity_type": lifecycle or "on-demand", "private_ip": i.private_ip,
            "private_dns": i.private_dns_name, "provider_id": f"aws:///{i.availability_zone}/{i.id}",
            "launched": stamp(i.launch_time), "tags": {t["key"]: t["value"] for t in i.get_tags()},
            "user_data": base64.b64decode(str(i.user_data)).decode(errors="replace") if i.user_data else None,
            "profile": (i.iam_instance_profile or {}).get("Arn", "/").split("/")[-1] or None,
            "security_groups": sorted(g.id for g in i.nics[0].group_set) if i.nics else [],
            "reservation": getattr(i, "capacity_reservation_id", None), "tenancy": place.tenancy,
            "placement_group": getattr(place, "group_name", None) or None, "partition": getattr(place, "partition_number", None),
            "interfaces": [[getattr(n, "network_card_index", 0), n.device_index, n.interface_type] for n in i.nics.values()],
            "volumes": [[device, v.size, self.ec2.volumes[v.volume_id].volume_type] for device, v in i.get_block_device_mapping],
            "price": getattr(i, "price", None), "listed": is_listed(i),
        }

    def terminate(self, instance):
        """What EC2 does when a machine is to go: it is shutting down for a while."""
        before = copy.copy(instance._state)
        if before.name not in DONE:
            instance._state = instances.InstanceState("shutting-down", 32)
            self.later(self.settings["shutdown_seconds"], lambda: self.end(instance))
        return before

    def end(self, instance):
        if instance.state == "terminated":
            return
        addresses, subnet = list(instance._private_ips), self.ec2.get_subnet(instance.subnet_id)
        moto_terminate(instance)
        for address in addresses:
            subnet.del_subnet_ip(address)

    # -- reservations and groups

    def available(self, reservation):
        ident = reservation["CapacityReservationId"]
        used = [i for i in self.all() if getattr(i, "capacity_reservation_id", None) == ident and i.state not in DONE]
        return max(0, reservation["TotalInstanceCount"] - len(used))

    def reserve(self, spec):
        """A capacity reservation or block from what the control endpoint was told."""
        known = {"id", "type", "zone", "count", "kind", "match", "state", "ends_in_seconds", "interruptible", "owner", "tags", "tenancy"}
        if set(spec) - known or not {"type", "zone"} <= set(spec):
            raise Bad(f"a reservation has type, zone and perhaps {', '.join(sorted(known - {'type', 'zone'}))}")
        ident = spec.get("id") or f"cr-0{mock_random.get_random_hex(16)}"
        if spec["type"] not in self.catalog.types or spec["zone"] not in self.catalog.zones[self.args.region]:
            raise Bad(f"{spec['type']} in {spec['zone']} is not for sale: see /_fake/world and types.tsv")
        if spec.get("kind", "default") not in ("default", "capacity-block") or spec.get("match", "open") not in ("open", "targeted"):
            raise Bad("kind of a reservation is default or capacity-block, match is open or targeted")
        made = {
            "CapacityReservationId": ident, "OwnerId": spec.get("owner", ACCOUNT), "InstanceType": spec["type"],
            "CapacityReservationArn": f"arn:aws:ec2:{self.args.region}:{ACCOUNT}:capacity-reservation/{ident}",
            "InstancePlatform": "Linux/UNIX", "AvailabilityZone": spec["zone"],
            "AvailabilityZoneId": self.catalog.zones[self.args.region][spec["zone"]], "Tenancy": spec.get("tenancy", "default"),
            "TotalInstanceCount": spec.get("count", 1), "State": spec.get("state", "active"), "EndDateType": "unlimited",
            "InstanceMatchCriteria": spec.get("match", "targeted"), "ReservationType": spec.get("kind", "default"),
            "StartDate": now(), "CreateDate": now(), "Tags": tag_list(spec.get("tags", {})),
        }
        if spec.get("interruptible") is not None:
            made["Interruptible"] = spec["interruptible"]
        self.reservations[ident] = made
        if spec.get("ends_in_seconds") is not None:
            self.end_reservation(made, spec["ends_in_seconds"])
        return made

    def end_reservation(self, reservation, seconds):
        date = now() + datetime.timedelta(seconds=seconds)
        reservation.update(EndDate=date, EndDateType="limited")

        def do_if_still(act):
            return lambda: act() if reservation.get("EndDate") == date else None

        def drain():
            for i in self.all():
                if getattr(i, "capacity_reservation_id", None) == reservation["CapacityReservationId"]:
                    self.terminate(i)

        self.later(seconds, do_if_still(lambda: reservation.update(State="expired")))
        if reservation["ReservationType"] == "capacity-block":
            self.later(max(0, seconds - BLOCK_END_SECONDS), do_if_still(drain))

    def group_of(self, data):
        """The placement group that launch data name, if any."""
        place = data.get("Placement") or {}
        wanted = place.get("GroupId") or place.get("GroupName")
        if not wanted:
            return None
        for group in self.groups.values():
            if wanted in (group["GroupId"], group["GroupName"]):
                return group
        raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{wanted}' is unknown.")

    def members(self, group):
        return [i for i in self.all() if getattr(i.placement, "group_id", None) == group["GroupId"] and i.state not in DONE]

    def boot(self, instance):
        """A new machine is pending for a while, and may not be listed for a while."""

        def run():
            if instance.state == "pending":
                instance._state = instances.InstanceState("running", 16)

        instance.listed_at = time.monotonic() + self.settings["list_delay_seconds"]
        if self.settings["boot_seconds"] > 0:
            instance._state = instances.InstanceState("pending", 0)
            self.later(self.settings["boot_seconds"], run)


def is_listed(instance):
    return time.monotonic() >= getattr(instance, "listed_at", 0)


# ---------------------------------------------------------------------------- launching


@dataclass
class Pool:
    """One way to get a machine: a type in a subnet, bought in one of the ways there are."""

    kind: str  # spot, on-demand, capacity-block, reserved-capacity
    data: dict
    instance_type: str
    subnet: object
    zone: str
    template: dict | None = None
    override: dict | None = None
    price: Decimal | None = None
    priority: float = float("inf")

    def facts(self, capacity_type):
        """What shortages are about."""
        return {"type": self.instance_type, "zone": self.zone, "capacity_type": capacity_type}

    def told(self):
        """How an answer of CreateFleet names it."""
        override = {**(self.override or {}), "InstanceType": self.instance_type, "AvailabilityZone": self.zone}
        lifecycle = "on-demand" if self.kind == "reserved-capacity" else self.kind
        return {
            "LaunchTemplateAndOverrides": {"LaunchTemplateSpecification": self.template, "Overrides": override},
            "Lifecycle": lifecycle,
        }


class Market:
    """What it takes to get a machine: launch data become pools, pools are checked, and machines are made of them."""

    def __init__(self, cloud):
        self.cloud = cloud

    @property
    def ec2(self):
        return self.cloud.ec2

    def resolve(self, asked):
        """(the specification as answers name it, launch data) of a launch template at a version."""
        held = self.ec2.launch_templates
        ident, name = asked.get("LaunchTemplateId"), asked.get("LaunchTemplateName")
        found = held.get(ident) if ident else next((t for t in held.values() if t.name == name), None)
        if found is None:
            code = "InvalidLaunchTemplateId.NotFound" if ident else "InvalidLaunchTemplateName.NotFoundException"
            raise EC2ClientError(code, f"The specified launch template, {ident or name}, does not exist.")
        version = found.get_version(asked.get("Version") or "$Default")
        return {"LaunchTemplateId": found.id, "LaunchTemplateName": found.name, "Version": str(version.number)}, version.data

    @staticmethod
    def merge(data, more):
        """Launch data with what a request says on top; network interfaces are merged by card and device."""
        cards = {}
        for card in [*(data.get("NetworkInterfaces") or []), *(more.get("NetworkInterfaces") or [])]:
            at = (int(card.get("NetworkCardIndex") or 0), int(card.get("DeviceIndex") or 0))
            cards[at] = {**cards.get(at, {}), **card}
        place = {**(data.get("Placement") or {}), **(more.get("Placement") or {})}
        merged = {**data, **{key: value for key, value in more.items() if value is not None}}
        return {**merged, "NetworkInterfaces": list(cards.values()), "Placement": place}

    def pool(self, data, kind=None, **more):
        """A pool from whole launch data."""
        cards, zone = data.get("NetworkInterfaces") or [], data.get("AvailabilityZone") or (data.get("Placement") or {}).get("AvailabilityZone")
        wanted = data.get("SubnetId") or next((c["SubnetId"] for c in cards if c.get("SubnetId")), None)
        defaults = self.ec2.get_default_subnets()
        subnet = self.ec2.get_subnet(wanted) if wanted else defaults.get(zone) if zone else next(iter(defaults.values()))
        if subnet is None or (zone and zone != subnet.availability_zone):
            raise EC2ClientError("InvalidParameterValue", f"The subnet {wanted} is not in the availability zone {zone}.")
        name = data.get("InstanceType")
        if not name:
            raise EC2ClientError("MissingParameter", "The request must contain the parameter InstanceType")
        kind = kind or (data.get("InstanceMarketOptions") or {}).get("MarketType") or "on-demand"
        price = self.cloud.catalog.price("spot" if kind == "spot" else "on-demand", name, subnet.availability_zone)
        return Pool(kind, data, name, subnet, subnet.availability_zone, price=price, **more)

    def check(self, pool):
        """Fails as EC2 does when these launch data cannot work, capacity aside."""
        data, name, told = pool.data, pool.instance_type, self.cloud.catalog.types.get(pool.instance_type)
        image, arches = self.ec2.amis.get(data.get("ImageId")), told and told["ProcessorInfo"]["SupportedArchitectures"]
        group = self.cloud.group_of(data)
        if told is None:
            raise EC2ClientError("InvalidInstanceType", f"The instance type '{name}' does not exist")
        if not self.cloud.catalog.offered(name, pool.zone):
            text = f"Your requested instance type ({name}) is not supported in your requested Availability Zone ({pool.zone})."
            raise EC2ClientError("Unsupported", text)
        if image is None:
            raise EC2ClientError("InvalidAMIID.NotFound", f"The image id '[{data.get('ImageId')}]' does not exist")
        if image.architecture not in arches:
            text = f"The architecture '{arches[0]}' of the specified instance type does not match that of the AMI, '{image.architecture}'."
            raise EC2ClientError("InvalidParameterValue", text)
        if len(base64.b64decode(encoded(data.get("UserData")))) > USER_DATA_MAX:
            raise EC2ClientError("InvalidParameterValue", f"User data is limited to {USER_DATA_MAX} bytes")
        self.profile(data)
        for ident in security_groups(data):
            held = self.ec2.get_security_group_from_id(ident)
            if held is None:
                raise EC2ClientError("InvalidGroup.NotFound", f"The security group '{ident}' does not exist")
            if held.vpc_id != pool.subnet.vpc_id:
                text = f"Security group {ident} and subnet {pool.subnet.id} belong to different networks."
                raise EC2ClientError("InvalidParameter", text)
        if group and group["Strategy"] not in told["PlacementGroupInfo"]["SupportedStrategies"]:
            text = f"{group['Strategy']} placement groups are not supported by the '{name}' instance type."
            raise EC2ClientError("InvalidParameterCombination", text)

    def profile(self, data):
        asked = data.get("IamInstanceProfile") or {}
        name = asked.get("Name") or asked.get("Arn", "").split("/")[-1]
        held = {profile.name: profile for profile in self.cloud.iam.get_instance_profiles()}
        if name and name not in held:
            text = f"Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
            raise EC2ClientError("InvalidParameterValue", text)
        return held.get(name)

    def reservation(self, pool):
        """The reservation that a machine of this pool would take its place in, if any."""
        spec = pool.data.get("CapacityReservationSpecification") or {}
        target = (spec.get("CapacityReservationTarget") or {}).get("CapacityReservationId")
        prefers, cloud = spec.get("CapacityReservationPreference", "open"), self.cloud

        def fits(r):
            return (r["InstanceType"], r["AvailabilityZone"], r["State"]) == (pool.instance_type, pool.zone, "active")

        if target:
            found = cloud.reservations.get(target)
            if found is None:
                raise EC2ClientError("InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{target}' does not exist")
            is_block = found["ReservationType"] == "capacity-block"
            if not fits(found) or is_block != (pool.kind == "capacity-block"):
                text = f"{target} is {found['ReservationType']} for {found['InstanceType']} in {found['AvailabilityZone']}, {found['State']}"
                raise EC2ClientError("InvalidParameterCombination", text)
            if cloud.available(found) < 1:
                raise EC2ClientError("ReservationCapacityExceeded", RESERVATION_FULL)
            return found
        if pool.kind == "spot" or prefers == "none":
            return None
        for found in cloud.reservations.values():
            if found["InstanceMatchCriteria"] == "open" and fits(found) and cloud.available(found):
                return found
        if prefers == "capacity-reservations-only":
            raise EC2ClientError("ReservationCapacityExceeded", RESERVATION_FULL)
        return None

    def room(self, pool, wanted):
        """(how many machines of a pool can be had, why no more)."""
        self.check(pool)
        cloud, name, zone, reservation = self.cloud, pool.instance_type, pool.zone, self.reservation(pool)
        if pool.price is None and not reservation:
            raise EC2ClientError("Unsupported", f"{name} is not sold as {pool.kind} in {zone}.")
        ceiling = (pool.override or {}).get("MaxPrice")
        if pool.kind == "spot" and ceiling and Decimal(str(ceiling)) < pool.price:
            text = f"Your Spot request price of {ceiling} is lower than the minimum required Spot request fulfillment price of {pool.price}."
            raise EC2ClientError("SpotMaxPriceTooLow", text)
        limits = []  # how many, code, message
        for rule in cloud.shortages.about(pool.facts("reserved" if reservation else pool.kind)):
            is_limit = "free" in rule or "code" in rule or "score" not in rule
            if is_limit and rule.get("free", 0) < wanted and cloud.shortages.fires(rule):
                text = f"We currently do not have sufficient {name} capacity in the Availability Zone you requested ({zone})."
                limits.append((rule.get("free", 0), rule.get("code", "InsufficientInstanceCapacity"), rule.get("message", text)))
        if reservation:
            limits.append((cloud.available(reservation), "ReservationCapacityExceeded", RESERVATION_FULL))
        text = f"There are not enough free addresses in subnet '{pool.subnet.id}' to satisfy the requested number of instances."
        limits.append((pool.subnet.available_ip_address_count, "InsufficientFreeAddressesInSubnet", text))
        group = cloud.group_of(pool.data)
        if group and group["Strategy"] == "spread":
            used = len([m for m in cloud.members(group) if m.availability_zone == zone])
            text = f"The spread placement group {group['GroupName']} has reached its limit of {SPREAD_MAX} instances in {zone}."
            limits.append((SPREAD_MAX - used, "InstanceLimitExceeded", text))
        count, code, text = min(limits, key=lambda limit: limit[0])
        return (wanted, None) if count >= wanted else (max(0, count), EC2ClientError(code, text))

    def launch(self, pool, count, tags, more_tags=None):
        """Makes machines of a pool that has room for them; returns moto's reservation."""
        data, ec2, place = pool.data, self.ec2, pool.data.get("Placement") or {}
        reservation, profile, group = self.reservation(pool), self.profile(data), self.cloud.group_of(data)
        cards, merged = data.get("NetworkInterfaces") or [{}], convert_tag_spec(data.get("TagSpecifications") or [])
        for kind, values in tags.items():
            merged[kind] = {**merged.get(kind, {}), **values}
        made = ec2.run_instances(
            data["ImageId"], count, parse_user_data(encoded(data["UserData"])) if data.get("UserData") else None, [],
            instance_type=pool.instance_type, is_instance_type_default=False, subnet_id=pool.subnet.id,
            region_name=self.cloud.args.region, security_group_ids=security_groups(data), key_name=data.get("KeyName"),
            block_device_mappings=[], tags={"instance": {**merged.get("instance", {}), **(more_tags or {})}},
            associate_public_ip=cards[0].get("AssociatePublicIpAddress"), ebs_optimized=data.get("EbsOptimized") or False,
            monitoring_state="enabled" if (data.get("Monitoring") or {}).get("Enabled") else "disabled",
            metadata_options=data.get("MetadataOptions") or {},
        )
        for i in made.instances:
            i.price = None if pool.price is None else float(pool.price)
            i.hypervisor = self.cloud.catalog.types[pool.instance_type].get("Hypervisor", "xen")
            i.enclave_options, i.cpu_options = data.get("EnclaveOptions"), data.get("CpuOptions")
            i.capacity_reservation_specification = data.get("CapacityReservationSpecification")
            i.capacity_reservation_id = reservation and reservation["CapacityReservationId"]
            i.iam_instance_profile = profile and {"Arn": profile.arn, "Id": profile.id}
            i.placement.tenancy = place.get("Tenancy", "default")
            if pool.kind not in ("on-demand", "reserved-capacity"):
                i.lifecycle = i.instance_lifecycle = pool.kind
            if pool.kind == "spot":
                i.spot_instance_request_id = f"sir-{mock_random.get_random_hex(8)}"
                ec2.create_tags([i.spot_instance_request_id], merged.get("spot-instances-request", {}))
            if group:
                number = len(self.cloud.members(group)) % (group.get("PartitionCount") or 1) + 1
                i.placement.group_id, i.placement.group_name = group["GroupId"], group["GroupName"]
                if group["Strategy"] == "partition":
                    i.placement.partition_number = place.get("PartitionNumber") or number
            self.add_interfaces(i, pool.subnet, cards, merged.get("network-interface", {}))
            self.add_volumes(i, data.get("BlockDeviceMappings"), merged.get("volume", {}))
            self.cloud.boot(i)
        return made

    def add_interfaces(self, instance, subnet, cards, tags):
        """Moto has made the first interface; here come the others, and what moto knows nothing of."""
        for ix, card in enumerate(cards):
            index, device = int(card.get("NetworkCardIndex") or 0), int(card.get("DeviceIndex") or 0)
            made = instance.nics[0]
            if ix > 0:
                made = self.ec2.create_network_interface(subnet, [], group_ids=card.get("Groups") or [])
                instance.attach_eni(made, 1000 * index + device)
                made.device_index = device
            made.network_card_index, made.delete_on_termination = index, True
            made.interface_type = card.get("InterfaceType") or "interface"
            made.add_tags(tags)

    def add_volumes(self, instance, mappings, tags):
        """Snapshots need not exist, and keys are not made."""
        root = [{"DeviceName": instance.root_device_name, "Ebs": {"VolumeSize": 8}}]
        for device, ebs in [(m["DeviceName"], m["Ebs"]) for m in mappings or root if m.get("Ebs")]:
            volume = self.ec2.create_volume(int(ebs.get("VolumeSize") or 20), instance.availability_zone)
            for key in ("VolumeType", "Iops", "Throughput", "Encrypted", "KmsKeyId", "SnapshotId"):
                setattr(volume, camelcase_to_underscores(key), ebs.get(key, getattr(volume, camelcase_to_underscores(key))))
            self.ec2.attach_volume(volume.id, instance.id, device, ebs.get("DeleteOnTermination", True))
            volume.add_tags(tags)

    def fleet_pools(self, configs, kind):
        pools = {}
        for config in configs:
            template, data = self.resolve(config.get("LaunchTemplateSpecification") or {})
            for override in config.get("Overrides") or [{}]:
                if "InstanceRequirements" in override:
                    raise EC2ClientError("InvalidParameterValue", "this fake does not play InstanceRequirements: name instance types")
                whole, priority = self.merge(data, override), float(override.get("Priority", EVERYTHING))
                pool = self.pool(whole, kind, template=template, override=override, priority=priority)
                key = (pool.instance_type, pool.subnet.id, whole.get("ImageId"), str(sorted(whole["Placement"].items())))
                if key in pools:
                    raise EC2ClientError("InvalidFleetConfig", "The fleet configuration contains duplicate instance pools.")
                pools[key] = pool
        return list(pools.values())

    def in_order(self, pools, strategy):
        """Pools as an allocation strategy tries them; ties stay in the order of the request."""

        def price(pool):
            return EVERYTHING if pool.price is None else pool.price

        def score(pool):
            rules = self.cloud.shortages.about(pool.facts(pool.kind))
            return min((rule["score"] for rule in rules if "score" in rule), default=10)

        keys = {
            "lowest-price": price,
            "prioritized": lambda pool: pool.priority,
            "price-capacity-optimized": lambda pool: (score(pool) < 5, price(pool)),
            "capacity-optimized": lambda pool: -score(pool),
            "capacity-optimized-prioritized": lambda pool: (-score(pool), pool.priority),
            "diversified": lambda pool: 0,
        }
        if strategy not in keys:
            raise EC2ClientError("InvalidParameterValue", f"AllocationStrategy {strategy} is not one of {', '.join(keys)}")
        return sorted(pools, key=keys[strategy])

    def fill(self, pools, wanted, tags, fleet):
        """Buys from the pools in turn; (what was made, why not elsewhere)."""
        made, errors = [], []
        for pool in pools:
            if wanted == 0:
                break
            try:
                count, why = self.room(pool, wanted)
            except EC2ClientError as error:
                count, why = 0, error
            if count:
                marks = {"aws:ec2:fleet-id": fleet, "aws:ec2launchtemplate:id": pool.template["LaunchTemplateId"]}
                marks["aws:ec2launchtemplate:version"] = pool.template["Version"]
                ids = [machine.id for machine in self.launch(pool, count, tags, marks).instances]
                made.append({**pool.told(), "InstanceIds": ids, "InstanceType": pool.instance_type, "AvailabilityZone": pool.zone})
                for rule in self.cloud.shortages.about(pool.facts(pool.kind)):
                    if "free" in rule:
                        rule["free"] = max(0, rule["free"] - count)
                wanted -= count
            if why and wanted:
                errors.append({**pool.told(), "ErrorCode": why.code, "ErrorMessage": why.message})
        return made, errors


def encoded(user_data):
    """Base64 text: moto keeps text, bytes and a type of its own."""
    return user_data.decode() if isinstance(user_data, bytes) else str(user_data or "")


def security_groups(data):
    cards = data.get("NetworkInterfaces") or []
    return list(dict.fromkeys([*(data.get("SecurityGroupIds") or []), *(g for c in cards for g in c.get("Groups") or [])]))


# ---------------------------------------------------------------------------- the answers of EC2


def facts_match(facts, tags, filters):
    """Whether all filters hold; one that is not among the facts is refused."""
    for asked in filters:
        name, values = asked["Name"], asked.get("Values", [])
        if name == "tag-key":
            have = list(tags)
        elif name.startswith("tag:"):
            have = [tags[name[4:]]] if name[4:] in tags else []
        elif name in facts:
            have = facts[name] if isinstance(facts[name], list) else [facts[name]]
        else:
            raise EC2ClientError("InvalidParameterValue", f"The filter '{name}' is invalid")
        if not any(fnmatch.fnmatchcase(str(h), v) for h in have for v in values):
            return False
    return True


def once(method):
    """The same client token gets the same answer, without doing it again."""

    def answer(self):
        token = self._get_param("ClientToken")
        if not token or self._get_param("DryRun"):
            return method(self)
        key = (method.__name__, token)
        asked = json.dumps({k: v for k, v in self.params.items() if k != "ClientToken"}, sort_keys=True, default=str)
        if key not in CLOUD.tokens:
            CLOUD.tokens[key] = (asked, method(self))
        before, result = CLOUD.tokens[key]
        if before != asked:
            raise EC2ClientError("IdempotentParameterMismatch", f"The client token {token} was used with other parameters.")
        return result

    answer.__name__ = method.__name__
    return answer


def paged(method, default=None):
    """Pages of a list, as EC2 gives them and moto mostly does not."""

    def answer(self):
        size = self._get_param("MaxResults")
        start = self._get_param("NextToken")
        if start is not None and not str(start).isdigit():
            raise EC2ClientError("InvalidNextToken", f"The token '{start}' is invalid.")
        self.params = {**self.params, "MaxResults": EVERYTHING}
        self.params.pop("NextToken", None)
        result = dict(method(self).result)
        name = next(key for key, value in result.items() if isinstance(value, list))
        items, first = result[name], int(start or 0)
        last = first + int(size or default or EVERYTHING)
        result.update({name: items[first:last], "NextToken": str(last) if last < len(items) else None})
        return ActionResult(result)

    return answer


def with_known_templates(method):
    """Moto passes over unknown ids of launch templates, or says that their name is wrong."""

    def answer(self):
        for ident in [*self._get_param("LaunchTemplateIds", []), self._get_param("LaunchTemplateId")]:
            if ident and ident not in self.ec2_backend.launch_templates:
                text = f"The specified launch template, with template ID {ident}, does not exist."
                raise EC2ClientError("InvalidLaunchTemplateId.NotFound", text)
        return method(self)

    return answer


class Answers:
    """Methods that take the place of moto's, or that moto lacks."""

    @once
    def create_fleet(self):
        asked, market = self.params, CLOUD.market
        if asked.get("Type", "maintain") != "instant":
            raise EC2ClientError("InvalidParameterValue", "this fake plays only fleets of type instant")
        target = asked.get("TargetCapacitySpecification") or {}
        kind = target.get("DefaultTargetCapacityType", "on-demand")
        counts = {"spot": int(target.get("SpotTargetCapacity") or 0), "on-demand": int(target.get("OnDemandTargetCapacity") or 0)}
        counts[kind] = counts.get(kind, 0) + int(target.get("TotalTargetCapacity") or 0) - sum(counts.values())
        tags = convert_tag_spec(asked.get("TagSpecifications") or [])
        configs = asked.get("LaunchTemplateConfigs") or []
        if not configs:
            raise EC2ClientError("MissingParameter", "The request must contain the parameter LaunchTemplateConfigs")
        if asked.get("DryRun"):
            for pool in market.fleet_pools(configs, kind):
                market.check(pool)
            raise DryRunClientError()
        fleet = str(uuid.UUID(int=mock_random.getrandbits(128), version=4))
        made, errors = [], []
        for kind, wanted in counts.items():
            options = asked.get({"spot": "SpotOptions", "on-demand": "OnDemandOptions"}.get(kind)) or {}
            strategy = options.get("AllocationStrategy", "lowest-price" if kind in ("spot", "on-demand") else "diversified")
            pools = market.in_order(market.fleet_pools(configs, kind), strategy)
            more, why = market.fill(pools, wanted, tags, f"fleet-{fleet}")
            made, errors = made + more, errors + why
        return ActionResult({"FleetId": f"fleet-{fleet}", "Instances": made, "Errors": errors})

    @once
    def run_instances(self):
        asked, market = self.params, CLOUD.market
        data = market.resolve(asked["LaunchTemplate"])[1] if asked.get("LaunchTemplate") else {}
        others = ("LaunchTemplate", "TagSpecifications", "DryRun", "ClientToken")
        pool = market.pool(market.merge(data, {key: value for key, value in asked.items() if key not in others}))
        market.check(pool)
        self.error_on_dryrun()
        count, why = market.room(pool, int(asked.get("MaxCount", 1)))
        if count < int(asked.get("MinCount", 1)):
            raise why
        return ActionResult(market.launch(pool, count, convert_tag_spec(asked.get("TagSpecifications") or [])))

    def describe_instances(self):
        self.error_on_dryrun()
        wanted = self._get_param("InstanceIds", [])
        held = self.ec2_backend
        found = held.get_reservations_by_instance_ids(list(dict.fromkeys(wanted))) if wanted else held.all_reservations()
        for asked in self._get_param("Filters", []):
            found = filter_reservations(found, {asked["Name"]: asked.get("Values", [])})
        return ActionResult({"Reservations": [r for r in found if r.instances]})

    def describe_instance_status(self):
        wanted, everything = self._get_param("InstanceIds", []), self._get_param("IncludeAllInstances")
        found = self.ec2_backend.get_multi_instances_by_id(wanted) if wanted else self.ec2_backend.all_instances()
        told = []
        for i in found:
            if i.state != "running" and not everything:
                continue
            status, entry = CLOUD.statuses.get(i.id, {}), {}
            for key, name in (("InstanceStatus", "instance_status"), ("SystemStatus", "system_status")):
                value = status.get(name, "ok") if i.state == "running" else "not-applicable"
                detail = {"Name": "reachability", "Status": "passed" if value == "ok" else "failed"}
                if value == "impaired":
                    detail["ImpairedSince"] = status["since"]
                entry[key] = {"Status": value, "Details": [detail]}
            events = [{"Code": code, "Description": code, "NotBefore": status["since"]} for code in status.get("events", [])]
            facts = {
                "instance-status.status": entry["InstanceStatus"]["Status"], "system-status.status": entry["SystemStatus"]["Status"],
                "event.code": [e["Code"] for e in events], "instance-state-name": i.state, "availability-zone": i.availability_zone,
            }
            if facts_match(facts, {}, self._get_param("Filters", [])):
                told.append({"InstanceId": i.id, "AvailabilityZone": i.availability_zone, "InstanceState": i._state, "Events": events, **entry})
        return ActionResult({"InstanceStatuses": told})

    def describe_instance_types(self):
        self.error_on_dryrun()
        return moto_answers["describe_instance_types"](self)

    def describe_instance_type_offerings(self):
        self.error_on_dryrun()
        kind, region = self._get_param("LocationType", "region"), CLOUD.args.region
        told = []
        for name in sorted(CLOUD.catalog.types):
            zones = {z: ident for z, ident in CLOUD.catalog.zones[region].items() if CLOUD.catalog.offered(name, z)}
            places = {"availability-zone": list(zones), "availability-zone-id": list(zones.values()), "region": [region] if zones else []}
            for place in places[kind]:
                if facts_match({"instance-type": name, "location": place}, {}, self._get_param("Filters", [])):
                    told.append({"InstanceType": name, "LocationType": kind, "Location": place})
        return ActionResult({"InstanceTypeOfferings": told})

    def describe_spot_price_history(self):
        self.error_on_dryrun()
        wanted, only = set(self._get_param("InstanceTypes", [])), self._get_param("AvailabilityZone")
        product, told = (self._get_param("ProductDescriptions") or ["Linux/UNIX"])[0], []
        for name in sorted(wanted or CLOUD.catalog.types):
            for zone in CLOUD.catalog.zones[CLOUD.args.region]:
                price = CLOUD.catalog.price("spot", name, zone) if CLOUD.catalog.offered(name, zone) else None
                facts = {"instance-type": name, "availability-zone": zone, "product-description": product}
                if price is not None and only in (None, zone) and facts_match(facts, {}, self._get_param("Filters", [])):
                    row = {"InstanceType": name, "AvailabilityZone": zone, "SpotPrice": f"{price:.6f}", "ProductDescription": product}
                    told.append({**row, "Timestamp": STARTED})
        return ActionResult({"SpotPriceHistory": told})

    def describe_images(self):
        found = moto_answers["describe_images"](self).result["Images"]
        if not self._get_param("IncludeDeprecated"):
            day = stamp(now())
            found = [i for i in found if i.owner_id == ACCOUNT or not i.deprecation_time or i.deprecation_time > day]
        return ActionResult({"Images": found})

    def describe_capacity_reservations(self):
        self.error_on_dryrun()
        wanted, told = self._get_param("CapacityReservationIds", []), []
        for ident in wanted:
            if ident not in CLOUD.reservations:
                raise EC2ClientError("InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{ident}' does not exist")
        for r in CLOUD.reservations.values():
            facts = {
                "state": r["State"], "instance-type": r["InstanceType"], "availability-zone": r["AvailabilityZone"], "owner-id": r["OwnerId"],
                "instance-match-criteria": r["InstanceMatchCriteria"], "reservation-type": r["ReservationType"], "tenancy": r["Tenancy"],
            }
            if (not wanted or r["CapacityReservationId"] in wanted) and facts_match(facts, tags_of(r["Tags"]), self._get_param("Filters", [])):
                told.append({**r, "AvailableInstanceCount": CLOUD.available(r)})
        return ActionResult({"CapacityReservations": told})

    def create_placement_group(self):
        name, strategy = self._get_param("GroupName"), self._get_param("Strategy", "cluster")
        self.error_on_dryrun()
        if name in CLOUD.groups:
            raise EC2ClientError("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
        tags = convert_tag_spec(self._get_param("TagSpecifications", [])).get("placement-group", {})
        made = {"GroupName": name, "GroupId": f"pg-0{mock_random.get_random_hex(16)}", "Strategy": strategy, "State": "available"}
        if strategy == "partition":
            made["PartitionCount"] = int(self._get_param("PartitionCount", 2))
        CLOUD.groups[name] = {**made, "Tags": tag_list(tags)}
        return ActionResult({"PlacementGroup": CLOUD.groups[name]})

    def delete_placement_group(self):
        name = self._get_param("GroupName")
        self.error_on_dryrun()
        if name not in CLOUD.groups:
            raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
        if CLOUD.members(CLOUD.groups[name]):
            raise EC2ClientError("InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use and may not be deleted.")
        del CLOUD.groups[name]
        return EmptyResult()

    def describe_placement_groups(self):
        self.error_on_dryrun()
        names, idents = self._get_param("GroupNames", []), self._get_param("GroupIds", [])
        for key, values in (("GroupName", names), ("GroupId", idents)):
            for value in set(values) - {g[key] for g in CLOUD.groups.values()}:
                raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{value}' is unknown.")
        told = []
        for g in CLOUD.groups.values():
            facts = {"group-name": g["GroupName"], "state": g["State"], "strategy": g["Strategy"]}
            if (not names or g["GroupName"] in names) and (not idents or g["GroupId"] in idents):
                told += [g] * facts_match(facts, tags_of(g["Tags"]), self._get_param("Filters", []))
        return ActionResult({"PlacementGroups": told})

    def create_tags(self):
        missing = [r for r in self._get_param("Resources", []) if r.startswith("i-") and self.ec2_backend.get_instance_by_id(r) is None]
        if missing:
            raise InvalidInstanceIdError(missing)
        return moto_answers["create_tags"](self)


CLOUD, STARTED, moto_answers = None, now(), {}
moto_terminate = instances.Instance.terminate


def extend_moto(catalog):
    """Puts our answers and our tables in the places of moto's."""
    RegionsAndZonesBackend.zones = {
        region: [Zone(name=name, region_name=region, zone_id=ident) for name, ident in zones.items()]
        for region, zones in catalog.zones.items()
    }
    instance_types.INSTANCE_TYPES.update(catalog.types)
    for kind in ("region", "availability-zone", "availability-zone-id"):
        instance_types.INSTANCE_TYPE_OFFERINGS[kind] = {}
    instance_types.InstanceTypeBackend.instance_types = [instance_types.InstanceType(name) for name in sorted(catalog.types)]
    for name in ("describe_instance_types", "describe_images", "create_tags"):
        moto_answers[name] = getattr(EC2Response, name)
    for name, answer in vars(Answers).items():
        if not name.startswith("_"):
            setattr(EC2Response, name, answer)
    EC2Response.create_launch_template = once(EC2Response.create_launch_template)
    for name in ("delete_launch_template", "describe_launch_templates"):
        setattr(EC2Response, name, with_known_templates(getattr(EC2Response, name)))
    pages = {"describe_instance_types": 100, "describe_instance_type_offerings": 1000, "describe_spot_price_history": 1000}
    for name in (
        "describe_instances", "describe_instance_status", "describe_subnets", "describe_security_groups", "describe_images",
        "describe_launch_templates", "describe_capacity_reservations", "describe_launch_template_versions", *pages,
    ):
        setattr(EC2Response, name, paged(getattr(EC2Response, name), pages.get(name)))
    instances.Instance.terminate = lambda self: CLOUD.terminate(self)
    extend_listing()
    extend_iam()


def extend_listing():
    all_reservations = instances.InstanceBackend.all_reservations

    def listed(self, filters=None):
        found = all_reservations(self, filters)
        for reservation in found:
            reservation.instances = [i for i in reservation.instances if is_listed(i)]
        return found

    instances.InstanceBackend.all_reservations = listed
    attach = elastic_network_interfaces.Attachment.__init__

    def attached(self, eni):
        attach(self, eni)
        self.network_card_index = getattr(eni, "network_card_index", 0)

    elastic_network_interfaces.Attachment.__init__ = attached

    def get_tags(self):
        """Moto looks through the tags of everything."""
        return [{"resource_id": self.id, "key": key, "value": value} for key, value in self.ec2_backend.tags.get(self.id, {}).items()]

    TaggedEC2Resource.get_tags = get_tags


def extend_iam():
    from moto.iam.responses import IamResponse

    def list_instance_profiles(self):
        prefix = self._get_param("PathPrefix") or "/"
        return ActionResult({"InstanceProfiles": [p for p in self.backend.get_instance_profiles() if p.path.startswith(prefix)]})

    IamResponse.list_instance_profiles = list_instance_profiles


# ---------------------------------------------------------------------------- the control endpoint

MESSAGES = {
    "spot_interruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state_change": ("aws.ec2", "EC2 Instance State-change Notification"),
    "scheduled_change": ("aws.health", "AWS Health Event"),
    "reservation_interruption": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}


class Control:
    """Below /_fake: the method `patch_machines` answers PATCH /_fake/machines/ID. README.md says what each takes."""

    def __init__(self, cloud, query, body):
        self.cloud, self.query, self.body = cloud, query, body

    @classmethod
    def answer(cls, cloud, verb, path, query, text):
        """(status, value)."""
        what, _, name = path.strip("/").partition("/")
        method = getattr(cls, f"{verb.lower()}_{what.replace('-', '_')}", None)
        try:
            if method is None:
                raise Bad("it does not exist: GET /_fake lists what does")
            self = cls(cloud, query, json.loads(text or b"{}"))
            return 200, method(self, name) if name else method(self)
        except KeyError as error:
            why = f"it needs {error.args[0]!r}"
        except (Bad, ValueError, TypeError, AttributeError, EC2ClientError) as error:
            why = str(error)
        return 400, {"error": f"{verb} /_fake{path}: {why}"}

    def has(self, what, *known):
        for key in self.body:
            if key not in known:
                raise Bad(f"{what} has no {key!r}; it has {', '.join(known)}")

    @staticmethod
    def known(what, table, name):
        if name not in table:
            raise Bad(f"there is no {what} {name!r}; there are {', '.join(sorted(table)) or 'none'}")
        return table[name]

    def get_(self):
        names = [name.split("_", 1) for name in vars(Control) if name.split("_")[0] in ("get", "put", "post", "patch", "delete")]
        return sorted(f"{verb.upper()} /_fake/{what.replace('_', '-')}".rstrip("/") for verb, what in names)

    def get_world(self):
        return {**self.cloud.world, "settings": self.cloud.settings, "seed": self.cloud.args.seed}

    def put_settings(self):
        self.has("this", *self.cloud.settings)
        self.cloud.settings.update({key: float(value) for key, value in self.body.items()})
        return self.cloud.settings

    def get_requests(self):
        asked = {key: value for key, value in self.query.items() if key != "since"}
        since = int(self.query.get("since", 0))
        return [e for e in self.cloud.requests if e["n"] > since and all(e[key] == value for key, value in asked.items())]

    def delete_requests(self):
        self.cloud.requests.clear()

    def get_faults(self):
        return self.cloud.faults.told()

    def post_faults(self):
        kind = self.body.get("kind")
        if kind not in FAULT_KINDS:
            raise Bad(f"kind {kind!r} is not one of {', '.join(FAULT_KINDS)}")
        if kind == "error" and "code" not in self.body:
            raise Bad("a fault of kind error needs a code")
        return {"id": self.cloud.faults.add(self.body)}

    def delete_faults(self, name=None):
        self.cloud.faults.remove(name)

    def get_shortages(self):
        return self.cloud.shortages.told()

    def post_shortages(self):
        return {"id": self.cloud.shortages.add(self.body)}

    def delete_shortages(self, name=None):
        self.cloud.shortages.remove(name)

    def get_machines(self):
        return [self.cloud.told(i) for i in self.cloud.all() if self.query.get("state", i.state) == i.state]

    def post_machines(self):
        self.has("a machine", "type", "subnet", "image", "capacity_type", "tags", "age_seconds")
        market, body = self.cloud.market, self.body
        data = {"InstanceType": body["type"], "SubnetId": body["subnet"], "ImageId": body["image"]}
        pool = market.pool(data, body.get("capacity_type", "on-demand"))
        market.check(pool)
        made = market.launch(pool, 1, {"instance": body.get("tags", {})}).instances[0]
        made.launch_time -= datetime.timedelta(seconds=body.get("age_seconds", 0))
        return self.cloud.told(made)

    def patch_machines(self, name):
        status = ("instance_status", "system_status", "events")
        self.has("a machine", "state", "age_seconds", "tags", "since_seconds", *status)
        instance, body = self.cloud.machine(name), self.body
        if "state" in body:
            {"stopped": instance.stop, "running": instance.start}[body["state"]]()
        if "age_seconds" in body:
            instance.launch_time = (now() - datetime.timedelta(seconds=body["age_seconds"])).replace(tzinfo=None)
        instance.add_tags(body.get("tags", {}))
        told = {key: body[key] for key in status if key in body}
        if told:
            told["since"] = now() - datetime.timedelta(seconds=body.get("since_seconds", 0))
            self.cloud.statuses[name] = {**self.cloud.statuses.get(name, {}), **told}
        return self.cloud.told(instance)

    def delete_machines(self, name):
        instance = self.cloud.machine(name)
        self.cloud.terminate(instance)
        if self.query.get("at_once"):
            self.cloud.end(instance)
        return self.cloud.told(instance)

    def get_subnets(self):
        return {s.id: {"zone": s.availability_zone, "free": s.available_ip_address_count} for s in self.cloud.ec2.describe_subnets()}

    def patch_subnets(self, name):
        subnet = self.cloud.ec2.get_subnet(name)
        subnet._available_ip_addresses += int(self.body["free"]) - subnet.available_ip_address_count

    def post_images(self):
        known = ("name", "id", "architecture", "created", "deprecated", "state", "owner", "platform", "tags", "parameters")
        self.has("an image", *known)
        return {"id": self.cloud.image(self.body)}

    def patch_images(self, name):
        self.has("an image", "deprecated", "state")
        image = self.known("image", self.cloud.ec2.amis, name)
        image.deprecation_time = self.body.get("deprecated", image.deprecation_time)
        image.state = self.body.get("state", image.state)

    def delete_images(self, name):
        self.known("image", self.cloud.ec2.amis, name)
        del self.cloud.ec2.amis[name]

    def put_parameters(self):
        self.cloud.set_parameters(self.body)

    def put_cluster(self):
        self.has("a cluster", "endpoint", "certificate_authority", "version", "service_cidr", "status")
        self.cloud.change_cluster(**self.body)

    def post_reservations(self):
        return {"id": self.cloud.reserve(self.body)["CapacityReservationId"]}

    def patch_reservations(self, name):
        self.has("a reservation", "count", "state", "ends_in_seconds")
        held, body = self.known("reservation", self.cloud.reservations, name), self.body
        held.update(TotalInstanceCount=body.get("count", held["TotalInstanceCount"]), State=body.get("state", held["State"]))
        if "ends_in_seconds" in body:
            self.cloud.end_reservation(held, body["ends_in_seconds"])

    def delete_reservations(self, name):
        self.known("reservation", self.cloud.reservations, name)
        del self.cloud.reservations[name]

    def put_prices(self):
        for kind, table in self.body.items():
            for key, price in table.items():
                name, _, zone = key.partition("/")
                if kind not in ("spot", "on-demand") or name not in self.cloud.catalog.types:
                    raise Bad(f"{kind} {name!r}: prices are spot or on-demand, of types that types.tsv has")
                self.cloud.catalog.fixed[kind, name, zone or "*"] = None if price is None else Decimal(str(price))

    def put_withheld(self):
        self.cloud.catalog.withheld = [tuple(pair) for pair in self.body]

    def put_zonal_shifts(self):
        start, arn = time.time(), self.cloud.cluster.arn
        told = {"resourceIdentifier": arn, "startTime": start, "comment": "", "appliedStatus": "APPLIED"}
        self.cloud.shifts = [
            {**told, "zonalShiftId": str(uuid.uuid4()), "awayFrom": s["away_from"], "expiryTime": start + s.get("seconds", 3600)}
            for s in self.body
        ]

    def post_messages(self):
        self.has("a message", "kind", "machines", "state", "age_seconds", "terminate_after_seconds", "raw")
        body, named = self.body, [self.cloud.machine(ident) for ident in self.body.get("machines", [])]
        if "raw" in body:
            texts = [body["raw"] if isinstance(body["raw"], str) else json.dumps(body["raw"])]
        elif body.get("kind") in MESSAGES and named:
            # A health event is about many machines, all others are about one each.
            groups = [body["machines"]] if body["kind"] == "scheduled_change" else [[ident] for ident in body["machines"]]
            texts = [json.dumps(self.message(group)) for group in groups]
        else:
            raise Bad(f"a message has machines, and a kind of {', '.join(MESSAGES)}; or it is raw")
        for text in texts:
            self.cloud.sqs.send_message(self.cloud.args.cluster, text)
        for machine in named if "terminate_after_seconds" in body else []:
            self.cloud.later(body["terminate_after_seconds"], lambda machine=machine: self.cloud.terminate(machine))
        return {"sent": len(texts)}

    def message(self, idents):
        """What EventBridge puts on the queue."""
        kind, region = self.body["kind"], self.cloud.args.region
        when = now() - datetime.timedelta(seconds=self.body.get("age_seconds", 0))
        details = {
            "spot_interruption": {"instance-id": idents[0], "instance-action": "terminate"},
            "state_change": {"instance-id": idents[0], "state": self.body.get("state", "stopping")},
            "scheduled_change": {
                "service": "EC2", "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "eventTypeCategory": "scheduledChange",
                "affectedEntities": [{"entityValue": ident} for ident in idents],
            },
        }
        return {
            "version": "0", "id": str(uuid.uuid4()), "source": MESSAGES[kind][0], "detail-type": MESSAGES[kind][1], "account": ACCOUNT,
            "region": region, "time": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "detail": details.get(kind, {"instance-id": idents[0]}),
            "resources": [f"arn:aws:ec2:{region}:{ACCOUNT}:instance/{ident}" for ident in idents],
        }


# ---------------------------------------------------------------------------- the gateway

REST = (
    ("eks", re.compile(r"/clusters/(?P<name>[^/]+)$"), "DescribeCluster"),
    ("eks", re.compile(r"/clusters/(?P<clusterName>[^/]+)/node-groups/(?P<nodegroupName>[^/]+)$"), "DescribeNodegroup"),
    ("eks", re.compile(r"/clusters/(?P<clusterName>[^/]+)/node-groups$"), "ListNodegroups"),
    ("arc-zonal-shift", re.compile(r"/managedresources/(?P<resourceIdentifier>.+)$"), "GetManagedResource"),
)


def nested(pairs):
    """Flat names of the query protocols as a tree: `Filter.1.Value.2` is Filter[0].Value[1]."""
    root = {}
    for name, value in pairs:
        *path, last = name.split(".")
        at = root
        for part in path:
            at = at.setdefault(part, {})
        at[last] = value

    def lists(node):
        if not isinstance(node, dict):
            return node
        if list(node) == ["member"]:
            return lists(node["member"])
        if node and all(key.isdigit() for key in node):
            return [lists(node[key]) for key in sorted(node, key=int)]
        return {key: lists(value) for key, value in node.items()}

    return lists(root)


def as_json(body):
    try:
        return json.loads(body or b"{}")
    except ValueError:
        return {"unreadable": body.decode(errors="replace")}


class Call:
    """What a request asks of whom."""

    def __init__(self, environ, body):
        scope = re.search(r"Credential=([^/]+)/\d+/([^/]*)/([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
        self.key, self.region, self.service = scope.groups() if scope else ("", "", "")
        self.path = urllib.parse.unquote(environ.get("PATH_INFO", "/"))
        target, self.params = environ.get("HTTP_X_AMZ_TARGET"), {}
        if target:
            self.protocol, self.action = 2, target.split(".")[-1]
            self.params = as_json(body)
        elif environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
            pairs = urllib.parse.parse_qsl(body.decode(), keep_blank_values=True)
            self.action = dict(pairs).get("Action", "")
            self.service = self.service or "sts"
            self.protocol = 0 if self.service == "ec2" else 1
            self.params = nested(pair for pair in pairs if pair[0] not in ("Action", "Version"))
        else:
            self.protocol, self.action = 2, f"{environ['REQUEST_METHOD']} {self.path}"
            for service, pattern, action in REST:
                found = pattern.match(self.path)
                if found and service == self.service and environ["REQUEST_METHOD"] == "GET":
                    self.action, self.params = action, found.groupdict()

    def told(self):
        return {"service": self.service, "region": self.region, "action": self.action, "key": self.key, "params": self.params}

    def failed(self, status, code, message):
        """An error as the service would tell it: (status, headers, body)."""
        if self.protocol == 2:
            headers = [("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-ErrorType", code)]
            return status, headers, json.dumps({"__type": code, "message": message}).encode()
        error = f"<Code>{code}</Code><Message>{message}</Message>"
        if self.protocol == 0:
            text = f"<Response><Errors><Error>{error}</Error></Errors><RequestID>fake</RequestID></Response>"
        else:
            kind = "Receiver" if status >= 500 else "Sender"
            text = f"<ErrorResponse><Error><Type>{kind}</Type>{error}</Error><RequestId>fake</RequestId></ErrorResponse>"
        return status, [("Content-Type", "text/xml")], text.encode()

    def answered(self, value):
        return 200, [("Content-Type", "application/x-amz-json-1.1")], json.dumps(value).encode()


def get_products(cloud, call):
    """The pricing service: on-demand prices, of bare metal apart from all others."""
    asked = {f["Field"]: f["Value"] for f in call.params.get("Filters", [])}
    is_metal = "bare metal" in asked.get("productFamily", "")
    rows = []
    for name in sorted(cloud.catalog.types):
        price = cloud.catalog.price("on-demand", name, "*")
        here = asked.get("regionCode", cloud.args.region) == cloud.args.region
        if price is None or not here or cloud.catalog.types[name]["BareMetal"] != is_metal:
            continue
        dimension = {"unit": "Hrs", "pricePerUnit": {cloud.catalog.currency: f"{price:.10f}"}}
        attributes = {**asked, "instanceType": name, "regionCode": cloud.args.region}
        terms = {"OnDemand": {f"{name}.JRTC": {"priceDimensions": {f"{name}.JRTC.6YS6": dimension}}}}
        rows.append({"product": {"productFamily": asked.get("productFamily"), "attributes": attributes}, "terms": terms})
    first = int(call.params.get("NextToken") or 0)
    last = first + int(call.params.get("MaxResults") or 100)
    more = {"NextToken": str(last)} if last < len(rows) else {}
    return call.answered({"FormatVersion": "aws_v1", "PriceList": [json.dumps(row) for row in rows[first:last]], **more})


def get_managed_resource(cloud, call):
    arn = call.params["resourceIdentifier"]
    if arn != cloud.cluster.arn:
        return call.failed(404, "ResourceNotFoundException", f"{arn} is not managed")
    shifts = [shift for shift in cloud.shifts if shift["expiryTime"] > time.time()]
    return call.answered({"arn": arn, "name": cloud.cluster.name, "appliedWeights": {}, "zonalShifts": shifts, "autoshifts": []})


# Services that moto does not have. Auto Scaling groups and EKS node groups it has: what it lacks of them goes here, too.
OURS = {("pricing", "GetProducts"): get_products, ("arc-zonal-shift", "GetManagedResource"): get_managed_resource}


class Gateway:
    """Every request: control endpoint or AWS, with faults, and a line in the log."""

    def __init__(self, cloud):
        self.cloud = cloud
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.moto_lock = threading.Lock()

    def __call__(self, environ, start_response):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        path = environ.get("PATH_INFO", "/")
        if path == "/_fake" or path.startswith("/_fake/"):
            query = dict(urllib.parse.parse_qsl(environ.get("QUERY_STRING", "")))
            with self.cloud.lock:
                self.cloud.settle()
                status, value = Control.answer(self.cloud, environ["REQUEST_METHOD"], path[len("/_fake") :], query, body)
            status, headers, text = status, [("Content-Type", "application/json")], json.dumps(value, default=str).encode()
        else:
            status, headers, text = self.serve(environ, body)
        if status is None:
            # The server takes it for a client that has gone, and closes.
            raise ConnectionResetError
        headers = [pair for pair in headers if pair[0].lower() != "content-length"] + [("Content-Length", str(len(text)))]
        start_response(f"{status} -", headers)
        return [text]

    def serve(self, environ, body):
        """An answer of AWS; a status of None means that the connection is to be cut."""
        call, cloud = Call(environ, body), self.cloud
        began, wait, fault = time.monotonic(), 0.0, None
        with cloud.lock:
            is_dry = str(call.params.get("DryRun", "false")).lower() == "true"
            for rule in cloud.faults.about({"service": call.service, "action": call.action}):
                wanted = rule.get("dry_run") in (None, is_dry) and rule.get("contains", "") in json.dumps(call.params)
                if wanted and cloud.faults.fires(rule):
                    if rule["kind"] == "latency":
                        wait += rule.get("milliseconds", 1000) / 1000
                        continue
                    fault = rule
                    break
        time.sleep(wait)
        kind = fault and fault["kind"]
        if kind == "refused":
            status, headers, text = None, [], b""
        elif kind == "error":
            status, headers, text = call.failed(fault.get("status", 400), fault["code"], fault.get("message", fault["code"]))
        elif kind in FAULTS:
            *codes, message = FAULTS[kind]
            status, headers, text = call.failed(*codes[call.protocol], fault.get("message", message))
        else:
            status, headers, text = self.ask(call, environ)
        self.record(call, began, (status, headers, text), fault)
        return (None if kind == "lost" else status), headers, text

    def ask(self, call, environ):
        # A queue that is waited on must not stop everything else.
        if call.service == "sqs":
            return self.ask_moto(environ)
        with self.cloud.lock:
            self.cloud.settle()
            ours = OURS.get((call.service, call.action))
            try:
                return ours(self.cloud, call) if ours else self.ask_moto(environ)
            except NotImplementedError as error:
                return call.failed(400, "InvalidAction", f"the fake does not play this: {error}")
            except Exception as error:
                traceback.print_exc()
                return call.failed(500, "InternalFailure", f"the fake is broken: {error!r}")

    def ask_moto(self, environ):
        with self.moto_lock:
            app = self.moto.get_application(environ)
        app.config["PROPAGATE_EXCEPTIONS"] = True
        chunks, status, headers = run_wsgi_app(app, environ, buffered=True)
        return int(status.split()[0]), list(headers), b"".join(chunks)

    def record(self, call, began, answer, fault):
        cloud, (status, headers, text) = self.cloud, answer
        code = dict((name.lower(), value) for name, value in headers).get("x-amzn-errortype", "").split(":")[0]
        found = re.search(rb"<Code>([^<]+)</Code>|\"__type\": ?\"(?:[^\"#]*#)?([^\"]+)\"", text) if status != 200 else None
        error = code or (found and (found[1] or found[2]).decode()) or None
        entry = {"n": 0, "time": stamp(now()), "t": round(began - cloud.began, 3), **call.told(), "status": status, "error": error}
        if fault:
            entry["fault"] = {"id": fault["id"], "kind": fault["kind"]}
        if call.action in ("CreateFleet", "RunInstances", "TerminateInstances"):
            entry["machines"] = sorted({ident.decode() for ident in re.findall(rb"\bi-[0-9a-f]{17}\b", text)})
            entry["pool_errors"] = [code.decode() for code in re.findall(rb"<errorCode>([^<]+)<", text)]
        entry["ms"] = round((time.monotonic() - began) * 1000)
        with cloud.lock:
            cloud.n_requests += 1
            entry["n"] = cloud.n_requests
            cloud.requests.append(entry)
            if cloud.log:
                cloud.log.write(json.dumps(entry) + "\n")
                cloud.log.flush()




class Handler(MotoRequestHandler):
    protocol_version = "HTTP/1.1"

    def connection_dropped(self, error, environ=None):
        self.close_connection = True

    def log(self, type, message, *args):
        """Requests are in the log; only what went wrong with the server itself is told."""
        if type == "error":
            sys.stderr.write(f"fake_ec2: {message % args if args else message}\n")


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    tables = Path(__file__).resolve().parents[2] / "crates/joiner-catalog/data"
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--cluster", default="demo", help="name of the EKS cluster, and of the queue")
    parser.add_argument("--kubernetes-version", default="1.36")
    parser.add_argument("--endpoint", default="", help="of the cluster, as DescribeCluster tells it")
    parser.add_argument("--certificate-authority", default="ZmFrZQ==", help="of the cluster, base64")
    parser.add_argument("--catalog", type=Path, default=tables, help="folder of types.tsv, prices.tsv and zones.tsv")
    parser.add_argument("--log", help="file to which a line of JSON is added for each request")
    parser.add_argument("--seed", type=int, default=1, help="of ids and of faults that hit a share of calls")
    parser.add_argument("--until-input-ends", action="store_true", help="ends with the process that holds standard input open")
    return parser.parse_args(words)


def main():
    global CLOUD
    args = arguments()
    catalog = Catalog(args.catalog, args.region)
    extend_moto(catalog)
    CLOUD = Cloud(args, catalog)
    server = make_server("127.0.0.1", args.port, Gateway(CLOUD), threaded=True, request_handler=Handler)
    print(json.dumps({"url": f"http://127.0.0.1:{server.port}", "control": f"http://127.0.0.1:{server.port}/_fake"}), flush=True)
    if args.until_input_ends:
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
