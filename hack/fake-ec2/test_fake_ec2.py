"""Tests of the fake, with the SDK over real HTTP: python -m unittest discover -s hack/fake-ec2"""

import base64
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

HERE = Path(__file__).resolve().parent
REGION, CLUSTER = "us-east-1", "demo"
# However busy the machine is: a test that waits forever must not.
SECONDS_MAX = 600
WAIT_MAX = 60


class Fake:
    """The running program, and SDK clients of it."""

    def __init__(self, *more):
        words = [sys.executable, str(HERE / "fake_ec2.py"), "--until-input-ends", "--seed", "7", *more]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.clients = {}

    def client(self, service):
        if service not in self.clients:
            self.clients[service] = self.new_client(service, retries=0)
        return self.clients[service]

    def new_client(self, service, retries, region=REGION):
        config = Config(retries={"total_max_attempts": retries + 1, "mode": "standard"}, connect_timeout=30, read_timeout=60)
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        return boto3.client(service, endpoint_url=self.url, region_name=region, config=config, **keys)

    def ask(self, method, path, body=None):
        """The control endpoint; fails on anything but 200."""
        status, value = self.try_ask(method, path, body)
        assert status == 200, value
        return value

    def try_ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        connection.request(method, "/_fake" + path, json.dumps(body) if body is not None else None)
        answer = connection.getresponse()
        value = json.loads(answer.read())
        connection.close()
        return answer.status, value

    def end(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def until(what, seconds=WAIT_MAX):
    """Asks again until it is so."""
    end = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)
    return value


SHARED = {}


def setUpModule():
    signal.alarm(SECONDS_MAX)
    SHARED["folder"] = tempfile.TemporaryDirectory()
    SHARED["log"] = Path(SHARED["folder"].name) / "requests.jsonl"
    SHARED["fake"] = Fake("--log", str(SHARED["log"]))
    SHARED["world"] = SHARED["fake"].ask("GET", "/world")


def tearDownModule():
    SHARED["fake"].end()
    SHARED["folder"].cleanup()
    signal.alarm(0)


class FakeCase(unittest.TestCase):
    """Tests share one process; what they leave behind, the next does not see."""

    @property
    def fake(self):
        return SHARED["fake"]

    @property
    def world(self):
        return SHARED["world"]

    def setUp(self):
        self.ec2 = self.fake.client("ec2")
        for path in ("/faults", "/shortages", "/requests"):
            self.fake.ask("DELETE", path)
        self.fake.ask("PUT", "/settings", {"boot_seconds": 0, "shutdown_seconds": 0, "list_delay_seconds": 0})

    def fails(self, code, call, **parameters):
        with self.assertRaises(ClientError) as caught:
            call(**parameters)
        self.assertEqual(caught.exception.response["Error"]["Code"], code)
        return caught.exception.response["Error"]["Message"]

    def subnet(self, letter="a", tier="private"):
        return self.world["subnets"][f"{tier}-{REGION}{letter}"]

    def image(self, arch="x86_64"):
        path = f"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/{arch}/standard/recommended/image_id"
        return self.fake.client("ssm").get_parameter(Name=path)["Parameter"]["Value"]

    def template(self, **data):
        """A launch template of its own, its name."""
        FakeCase.count = getattr(FakeCase, "count", 0) + 1
        name = f"karpenter.k8s.aws/{FakeCase.count}"
        self.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData={"ImageId": self.image(), **data})
        return name

    def fleet(self, pools, count=1, kind="on-demand", strategy=None, template=None, **more):
        """CreateFleet over these (type, zone letter, rest of the override)."""
        overrides = [{"InstanceType": t, "SubnetId": self.subnet(z), **dict(*rest)} for t, z, *rest in pools]
        config = {"LaunchTemplateSpecification": {"LaunchTemplateName": template or self.template(), "Version": "$Latest"}, "Overrides": overrides}
        options = {"SpotOptions" if kind == "spot" else "OnDemandOptions": {"AllocationStrategy": strategy}} if strategy else {}
        target = {"TotalTargetCapacity": count, "DefaultTargetCapacityType": kind}
        return self.ec2.create_fleet(Type="instant", LaunchTemplateConfigs=[config], TargetCapacitySpecification=target, **options, **more)

    def bought(self, answer):
        """[(type, zone letter, how many)] of an answer of CreateFleet."""
        told = [(i["InstanceType"], i["LaunchTemplateAndOverrides"]["Overrides"]["AvailabilityZone"][-1], len(i["InstanceIds"])) for i in answer["Instances"]]
        return sorted(told)

    def errors(self, answer):
        return [(e["ErrorCode"], e["LaunchTemplateAndOverrides"]["Overrides"]["InstanceType"], e["Lifecycle"]) for e in answer["Errors"]]

    def one(self, **data):
        """The id of a new machine."""
        return self.fleet([("m5.large", "a")], template=self.template(**data))["Instances"][0]["InstanceIds"][0]

    def described(self, ident):
        return self.ec2.describe_instances(InstanceIds=[ident])["Reservations"][0]["Instances"][0]


class ForSale(FakeCase):
    def test_types_are_those_of_the_catalog_in_pages(self):
        filters = [{"Name": "supported-virtualization-type", "Values": ["hvm"]}, {"Name": "processor-info.supported-architecture", "Values": ["x86_64", "arm64"]}]
        pages = list(self.ec2.get_paginator("describe_instance_types").paginate(Filters=filters, PaginationConfig={"PageSize": 100}))
        types = {t["InstanceType"]: t for page in pages for t in page["InstanceTypes"]}
        table = (HERE.parents[1] / "crates/joiner-catalog/data/types.tsv").read_text().splitlines()
        self.assertEqual(len(types), len([line for line in table if line[0] not in ":#"]))
        self.assertEqual(len(pages), (len(types) + 99) // 100)
        m5 = types["m5.large"]
        self.assertEqual((m5["VCpuInfo"]["DefaultVCpus"], m5["MemoryInfo"]["SizeInMiB"], m5["Hypervisor"]), (2, 8192, "nitro"))
        self.assertEqual((m5["NetworkInfo"]["MaximumNetworkInterfaces"], m5["NetworkInfo"]["Ipv4AddressesPerInterface"]), (3, 10))
        self.assertEqual(m5["SupportedUsageClasses"], ["on-demand", "spot"])
        p4d = types["p4d.24xlarge"]
        self.assertEqual(p4d["GpuInfo"]["Gpus"][0], {"Name": "A100", "Manufacturer": "NVIDIA", "Count": 8, "MemoryInfo": {"SizeInMiB": 40960}})
        self.assertEqual(p4d["NetworkInfo"]["EfaInfo"]["MaximumEfaInterfaces"], 4)
        self.assertEqual(len(p4d["NetworkInfo"]["NetworkCards"]), 4)
        self.assertEqual(types["inf2.24xlarge"]["NeuronInfo"]["NeuronDevices"][0]["CoreInfo"]["Count"], 2)
        self.assertNotIn("Hypervisor", types["m5.metal"])
        self.fails("InvalidInstanceType", self.ec2.describe_instance_types, InstanceTypes=["m5.tiny"])
        self.fails("DryRunOperation", self.ec2.describe_instance_types, DryRun=True)

    def test_offerings_are_by_zone_and_can_be_withheld(self):
        def zones(kind="availability-zone"):
            filters = [{"Name": "instance-type", "Values": ["g5.xlarge"]}]
            told = self.ec2.describe_instance_type_offerings(LocationType=kind, Filters=filters)
            return [o["Location"] for o in told["InstanceTypeOfferings"]]

        self.assertEqual(zones(), list(self.world["zones"]))
        self.assertEqual(zones("availability-zone-id"), list(self.world["zones"].values()))
        self.fake.ask("PUT", "/withheld", [["g5.*", "us-east-1c"]])
        self.assertEqual(zones(), [z for z in self.world["zones"] if z != "us-east-1c"])
        answer = self.fleet([("g5.xlarge", "c"), ("g5.xlarge", "a")])
        self.assertEqual((self.bought(answer), self.errors(answer)), ([("g5.xlarge", "a", 1)], [("Unsupported", "g5.xlarge", "on-demand")]))
        answer = self.fleet([("g5.xlarge", "c")])
        self.assertEqual(self.errors(answer), [("Unsupported", "g5.xlarge", "on-demand")])
        self.fake.ask("PUT", "/withheld", [])
        told = self.ec2.describe_availability_zones()["AvailabilityZones"]
        self.assertEqual({z["ZoneName"]: z["ZoneId"] for z in told}, self.world["zones"])

    def test_prices_of_both_kinds(self):
        def products(family, tenancy):
            asked = {"regionCode": REGION, "operatingSystem": "Linux", "tenancy": tenancy, "productFamily": family}
            filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in asked.items()]
            pages = self.fake.client("pricing").get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=filters)
            rows = [json.loads(row) for page in pages for row in page["PriceList"]]
            terms = {r["product"]["attributes"]["instanceType"]: next(iter(r["terms"]["OnDemand"].values())) for r in rows}
            return {name: float(next(iter(t["priceDimensions"].values()))["pricePerUnit"]["USD"]) for name, t in terms.items()}

        shared, metal = products("Compute Instance", "Shared"), products("Compute Instance (bare metal)", "Dedicated")
        self.assertEqual((shared["m5.large"], metal["m5.metal"]), (0.096, 4.608))
        self.assertNotIn("m5.metal", shared)
        # The figures of the model in joiner-catalog.
        filters = {"InstanceTypes": ["m5.xlarge"], "ProductDescriptions": ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]}
        rows = self.ec2.describe_spot_price_history(**filters)["SpotPriceHistory"]
        prices = {r["AvailabilityZone"]: float(r["SpotPrice"]) for r in rows}
        self.assertEqual((prices["us-east-1a"], prices["us-east-1b"]), (0.10159, 0.09293))
        self.fake.ask("PUT", "/prices", {"spot": {"m5.xlarge/us-east-1a": 0.5, "m5.xlarge/us-east-1b": None}, "on-demand": {"m5.large": 0.2}})
        rows = self.ec2.describe_spot_price_history(**filters)["SpotPriceHistory"]
        prices = {r["AvailabilityZone"]: float(r["SpotPrice"]) for r in rows}
        self.assertEqual((prices["us-east-1a"], "us-east-1b" in prices), (0.5, False))
        self.assertEqual(products("Compute Instance", "Shared")["m5.large"], 0.2)
        self.fake.ask("PUT", "/prices", {"spot": {"m5.xlarge/us-east-1a": 0.10159, "m5.xlarge/us-east-1b": 0.09293}, "on-demand": {"m5.large": 0.096}})
        page = self.ec2.describe_spot_price_history(MaxResults=1000)
        self.assertEqual(len(page["SpotPriceHistory"]), 1000)
        self.assertEqual(len(self.ec2.describe_spot_price_history(MaxResults=1000, NextToken=page["NextToken"])["SpotPriceHistory"]), 1000)


class Fleets(FakeCase):
    def test_strategies_choose(self):
        pools = [("m5.xlarge", "a", {"Priority": 1}), ("m5.large", "a", {"Priority": 3}), ("c5.large", "a", {"Priority": 2})]
        self.assertEqual(self.bought(self.fleet(pools, strategy="lowest-price")), [("c5.large", "a", 1)])
        self.assertEqual(self.bought(self.fleet(pools, strategy="prioritized")), [("m5.xlarge", "a", 1)])
        both = [("m5.xlarge", "a"), ("m5.xlarge", "b")]
        answer = self.fleet(both, kind="spot", strategy="price-capacity-optimized")
        self.assertEqual(self.bought(answer), [("m5.xlarge", "b", 1)])
        self.assertEqual(self.described(answer["Instances"][0]["InstanceIds"][0])["InstanceLifecycle"], "spot")
        self.fake.ask("POST", "/shortages", {"type": "m5.xlarge", "zone": "us-east-1b", "score": 2})
        self.assertEqual(self.bought(self.fleet(both, kind="spot", strategy="price-capacity-optimized")), [("m5.xlarge", "a", 1)])
        self.assertEqual(self.bought(self.fleet(both, kind="spot", strategy="lowest-price")), [("m5.xlarge", "b", 1)])
        answer = self.fleet(pools, kind="spot", strategy="capacity-optimized-prioritized")
        self.assertEqual(self.bought(answer), [("m5.xlarge", "a", 1)])
        answer = self.fleet([("m5.large", "a", {"MaxPrice": "0.001"})], kind="spot")
        self.assertEqual(self.errors(answer), [("SpotMaxPriceTooLow", "m5.large", "spot")])

    def test_shortages_come_and_go(self):
        pools = [("c5.large", "a"), ("m5.large", "a"), ("m5.large", "b")]
        rule = self.fake.ask("POST", "/shortages", {"type": "c5.*", "zone": "us-east-1a", "capacity_type": "on-demand"})
        answer = self.fleet(pools)
        self.assertEqual(self.bought(answer), [("m5.large", "a", 1)])
        self.assertEqual(self.errors(answer), [("InsufficientInstanceCapacity", "c5.large", "on-demand")])
        self.assertEqual(self.errors(self.fleet(pools, kind="spot")), [])
        self.fake.ask("POST", "/shortages", {"type": "m5.large", "code": "MaxSpotInstanceCountExceeded"})
        answer = self.fleet(pools)
        self.assertEqual((answer["Instances"], len(answer["Errors"])), ([], 3))
        self.fake.ask("DELETE", f"/shortages/{rule['id']}")
        self.assertEqual(self.bought(self.fleet(pools)), [("c5.large", "a", 1)])
        self.fake.ask("DELETE", "/shortages")
        self.fake.ask("POST", "/shortages", {"type": "c5.large", "free": 2})
        answer = self.fleet(pools, count=5)
        self.assertEqual(self.bought(answer), [("c5.large", "a", 2), ("m5.large", "a", 3)])
        self.assertEqual(self.errors(answer), [("InsufficientInstanceCapacity", "c5.large", "on-demand")])
        self.assertEqual(self.bought(self.fleet(pools)), [("m5.large", "a", 1)])

    def test_templates_shape_machines(self):
        iam = self.fake.client("iam")
        iam.create_instance_profile(InstanceProfileName="shapes", Path="/karpenter/")
        iam.add_role_to_instance_profile(InstanceProfileName="shapes", RoleName=self.world["roles"][0])
        groups = [self.world["security_groups"][g] for g in ("cluster", "node")]
        text = "#!/bin/bash\necho hello\n"
        tags = [{"ResourceType": kind, "Tags": [{"Key": kind, "Value": "lt"}]} for kind in ("instance", "network-interface", "volume")]
        name = self.template(
            UserData=base64.b64encode(text.encode()).decode(), IamInstanceProfile={"Name": "shapes"}, TagSpecifications=tags,
            NetworkInterfaces=[{"DeviceIndex": 0, "Groups": groups, "AssociatePublicIpAddress": False}],
            MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 1}, Monitoring={"Enabled": True},
            BlockDeviceMappings=[
                {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 50, "VolumeType": "gp3", "Encrypted": True}},
                {"DeviceName": "/dev/sdf", "Ebs": {"VolumeType": "io2", "Iops": 3000, "SnapshotId": "snap-0123", "KmsKeyId": "key-1"}},
            ],
        )
        more = [{"ResourceType": kind, "Tags": [{"Key": "pool", "Value": "p"}]} for kind in ("instance", "volume", "fleet")]
        answer = self.fleet([("m5.large", "b")], template=name, TagSpecifications=more)
        told = self.described(answer["Instances"][0]["InstanceIds"][0])
        self.assertEqual(sorted(g["GroupId"] for g in told["SecurityGroups"]), sorted(groups))
        self.assertEqual(told["IamInstanceProfile"]["Arn"], f"arn:aws:iam::{self.world['account']}:instance-profile/karpenter/shapes")
        self.assertEqual((told["SubnetId"], told["Placement"]["AvailabilityZone"]), (self.subnet("b"), "us-east-1b"))
        self.assertEqual((told["MetadataOptions"]["HttpTokens"], told["Monitoring"]["State"]), ("required", "enabled"))
        have = {t["Key"]: t["Value"] for t in told["Tags"]}
        self.assertEqual((have["instance"], have["pool"], have["aws:ec2launchtemplate:version"]), ("lt", "p", "1"))
        volume = self.ec2.describe_volumes(VolumeIds=[told["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]])["Volumes"][0]
        self.assertEqual((volume["Size"], volume["VolumeType"], volume["Encrypted"]), (50, "gp3", True))
        self.assertEqual({t["Key"] for t in volume["Tags"]}, {"pool", "volume"})
        volume = self.ec2.describe_volumes(VolumeIds=[told["BlockDeviceMappings"][1]["Ebs"]["VolumeId"]])["Volumes"][0]
        self.assertEqual((volume["Iops"], volume["SnapshotId"]), (3000, "snap-0123"))
        kept = self.fake.ask("GET", "/machines")[-1]
        self.assertEqual((kept["id"], kept["user_data"], kept["profile"]), (told["InstanceId"], text, "shapes"))
        interface = self.ec2.describe_network_interfaces(NetworkInterfaceIds=[told["NetworkInterfaces"][0]["NetworkInterfaceId"]])
        self.assertEqual(interface["NetworkInterfaces"][0]["TagSet"], [{"Key": "network-interface", "Value": "lt"}])

    def test_versions_of_templates(self):
        name = self.template()
        arm = {"ImageId": self.image("arm64")}
        self.ec2.create_launch_template_version(LaunchTemplateName=name, LaunchTemplateData=arm)
        overrides = [{"InstanceType": "m6g.large", "SubnetId": self.subnet()}]

        def fleet(version):
            config = {"LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": version}, "Overrides": overrides}
            target = {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"}
            return self.ec2.create_fleet(Type="instant", LaunchTemplateConfigs=[config], TargetCapacitySpecification=target)

        self.assertEqual(fleet("$Latest")["Instances"][0]["LaunchTemplateAndOverrides"]["LaunchTemplateSpecification"]["Version"], "2")
        self.assertEqual(self.errors(fleet("1")), [("InvalidParameterValue", "m6g.large", "on-demand")])
        self.fails("InvalidLaunchTemplateId.VersionNotFound", fleet, version="3")
        self.fails("InvalidLaunchTemplateId.NotFound", self.ec2.delete_launch_template, LaunchTemplateId="lt-0")
        self.fails("InvalidLaunchTemplateId.NotFound", self.ec2.describe_launch_templates, LaunchTemplateIds=["lt-0"])
        self.ec2.delete_launch_template(LaunchTemplateName=name)
        self.fails("InvalidLaunchTemplateName.NotFoundException", fleet, version="$Latest")

    def test_dry_runs_validate(self):
        name = self.template()
        for call, more in ((self.fleet, {"pools": [("m5.large", "a")]}), (self.run, {})):
            self.fails("DryRunOperation", call, template=name, DryRun=True, **more)
        self.fails("DryRunOperation", self.ec2.create_launch_template, LaunchTemplateName="dry", LaunchTemplateData={}, DryRun=True)
        self.assertEqual(self.ec2.describe_launch_templates(Filters=[{"Name": "launch-template-name", "Values": ["dry"]}])["LaunchTemplates"], [])
        large = base64.b64encode(b"x" * 16385).decode()
        for data, code, words in (
            ({"ImageId": "ami-00000000000000000"}, "InvalidAMIID.NotFound", "ami-0"),
            ({"ImageId": self.image("arm64")}, "InvalidParameterValue", "architecture"),
            ({"UserData": large}, "InvalidParameterValue", "User data is limited to 16384 bytes"),
            ({"IamInstanceProfile": {"Name": "nowhere"}}, "InvalidParameterValue", "iamInstanceProfile.name"),
            ({"SecurityGroupIds": ["sg-00000000"]}, "InvalidGroup.NotFound", "sg-0"),
        ):
            bad = self.template(**data)
            self.assertIn(words, self.fails(code, self.fleet, pools=[("m5.large", "a")], template=bad, DryRun=True))
            self.assertIn(words, self.fails(code, self.run, template=bad, DryRun=True))
        self.assertIn("duplicate", self.fails("InvalidFleetConfig", self.fleet, pools=[("m5.large", "a")] * 2))

    def run(self, result=None, template=None, **more):
        if template is None:
            return super().run(result)
        card = {"DeviceIndex": 0, "SubnetId": self.subnet()}
        template = {"LaunchTemplateName": template, "Version": "$Latest"}
        return self.ec2.run_instances(InstanceType="m5.large", MinCount=1, MaxCount=1, LaunchTemplate=template, NetworkInterfaces=[card], **more)

    def test_client_tokens_buy_once(self):
        name, pools = self.template(), [("m5.large", "a")]
        first = self.fleet(pools, template=name, ClientToken="token-1")
        self.assertEqual(self.fleet(pools, template=name, ClientToken="token-1")["Instances"], first["Instances"])
        self.fails("IdempotentParameterMismatch", self.fleet, pools=pools, count=2, template=name, ClientToken="token-1")
        ids = {self.run(template=name, ClientToken="token-2")["Instances"][0]["InstanceId"] for _ in range(2)}
        self.assertEqual(len(ids), 1)
        data = {"LaunchTemplateName": "once", "LaunchTemplateData": {"ImageId": self.image()}}
        made = {self.ec2.create_launch_template(**data, ClientToken="t")["LaunchTemplate"]["LaunchTemplateId"] for _ in range(2)}
        self.assertEqual(len(made), 1)
        self.fails("InvalidLaunchTemplateName.AlreadyExistsException", self.ec2.create_launch_template, **data)

    def test_interfaces_for_efa(self):
        cards = [{"DeviceIndex": min(n, 1), "NetworkCardIndex": n, "InterfaceType": "efa" if n < 2 else "efa-only"} for n in range(4)]
        answer = self.fleet([("p4d.24xlarge", "a")], template=self.template(NetworkInterfaces=cards))
        told = self.described(answer["Instances"][0]["InstanceIds"][0])["NetworkInterfaces"]
        have = sorted((c["Attachment"]["NetworkCardIndex"], c["Attachment"]["DeviceIndex"], c["InterfaceType"]) for c in told)
        self.assertEqual(have, [(0, 0, "efa"), (1, 1, "efa"), (2, 1, "efa-only"), (3, 1, "efa-only")])

    def test_addresses_of_subnets_run_out(self):
        subnet = self.subnet("c")
        self.fake.ask("PATCH", f"/subnets/{subnet}", {"free": 2})
        answer = self.fleet([("m5.large", "c"), ("m5.xlarge", "a")], count=3)
        self.assertEqual(self.bought(answer), [("m5.large", "c", 2), ("m5.xlarge", "a", 1)])
        self.assertEqual(self.errors(answer), [("InsufficientFreeAddressesInSubnet", "m5.large", "on-demand")])
        self.assertEqual(self.ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailableIpAddressCount"], 0)
        self.ec2.terminate_instances(InstanceIds=next(i for i in answer["Instances"] if i["InstanceType"] == "m5.large")["InstanceIds"])
        until(lambda: self.ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailableIpAddressCount"] == 2)
        self.fake.ask("PATCH", f"/subnets/{subnet}", {"free": 8000})


class Reserved(FakeCase):
    def reserved(self, ident):
        return self.ec2.describe_capacity_reservations(CapacityReservationIds=[ident])["CapacityReservations"][0]

    def targeted(self, ident, **more):
        spec = {"CapacityReservationPreference": "capacity-reservations-only", "CapacityReservationTarget": {"CapacityReservationId": ident}}
        return self.template(CapacityReservationSpecification=spec, **more)

    def test_reservations_are_counted(self):
        made = self.fake.ask("POST", "/reservations", {"type": "m5.large", "zone": "us-east-1a", "count": 2, "tags": {"team": "a"}})["id"]
        told = self.ec2.describe_capacity_reservations(Filters=[{"Name": "tag:team", "Values": ["a"]}, {"Name": "state", "Values": ["active"]}])
        self.assertEqual([r["CapacityReservationId"] for r in told["CapacityReservations"]], [made])
        # A shortage of the others does not touch it.
        self.fake.ask("POST", "/shortages", {"type": "m5.large", "capacity_type": "on-demand"})
        name, pools = self.targeted(made), [("m5.large", "a")]
        ident = self.fleet(pools, template=name)["Instances"][0]["InstanceIds"][0]
        self.assertEqual((self.described(ident)["CapacityReservationId"], self.reserved(made)["AvailableInstanceCount"]), (made, 1))
        answer = self.fleet(pools, count=2, template=name)
        self.assertEqual((self.bought(answer), self.errors(answer)), ([("m5.large", "a", 1)], [("ReservationCapacityExceeded", "m5.large", "on-demand")]))
        self.ec2.terminate_instances(InstanceIds=[ident])
        self.assertEqual(self.reserved(made)["AvailableInstanceCount"], 1)
        self.fake.ask("PATCH", f"/reservations/{made}", {"state": "cancelled"})
        self.assertEqual(self.errors(self.fleet(pools, template=name))[0][0], "InvalidParameterCombination")
        self.fails("InvalidCapacityReservationId.NotFound", self.reserved, ident="cr-0")

    def test_open_reservations_are_used_unless_declined(self):
        made = self.fake.ask("POST", "/reservations", {"type": "r5.large", "zone": "us-east-1b", "count": 1, "match": "open"})["id"]
        none = self.template(CapacityReservationSpecification={"CapacityReservationPreference": "none"})
        self.fleet([("r5.large", "b")], template=none)
        self.assertEqual(self.reserved(made)["AvailableInstanceCount"], 1)
        self.fleet([("r5.large", "b")])
        self.assertEqual(self.reserved(made)["AvailableInstanceCount"], 0)
        self.fleet([("r5.large", "b")])
        self.fake.ask("DELETE", f"/reservations/{made}")

    def test_blocks_end_and_take_their_machines(self):
        made = self.fake.ask("POST", "/reservations", {"type": "p5.48xlarge", "zone": "us-east-1a", "kind": "capacity-block", "ends_in_seconds": 36000})["id"]
        told = self.reserved(made)
        self.assertEqual((told["ReservationType"], told["EndDateType"]), ("capacity-block", "limited"))
        name = self.targeted(made, InstanceMarketOptions={"MarketType": "capacity-block"})
        answer = self.fleet([("p5.48xlarge", "a")], kind="capacity-block", template=name)
        ident = answer["Instances"][0]["InstanceIds"][0]
        self.assertEqual((answer["Instances"][0]["Lifecycle"], self.described(ident)["InstanceLifecycle"]), ("capacity-block", "capacity-block"))
        self.fake.ask("PATCH", f"/reservations/{made}", {"ends_in_seconds": 1800})
        until(lambda: self.described(ident)["State"]["Name"] == "terminated")
        self.assertEqual(self.reserved(made)["State"], "active")
        self.fake.ask("PATCH", f"/reservations/{made}", {"ends_in_seconds": 0})
        until(lambda: self.reserved(made)["State"] == "expired")

    def test_placement_groups(self):
        spread = self.ec2.create_placement_group(GroupName="apart", Strategy="spread")["PlacementGroup"]
        parts = self.ec2.create_placement_group(GroupName="parts", Strategy="partition", PartitionCount=3)["PlacementGroup"]
        told = self.ec2.describe_placement_groups(GroupIds=[parts["GroupId"]], Filters=[{"Name": "state", "Values": ["available"]}])
        self.assertEqual(told["PlacementGroups"][0]["PartitionCount"], 3)
        answer = self.fleet([("m5.large", "a")], count=2, template=self.template(Placement={"GroupId": parts["GroupId"]}))
        places = [self.described(ident)["Placement"] for ident in answer["Instances"][0]["InstanceIds"]]
        self.assertEqual([(p["GroupId"], p["PartitionNumber"]) for p in places], [(parts["GroupId"], 1), (parts["GroupId"], 2)])
        answer = self.fleet([("m5.large", "a")], count=9, template=self.template(Placement={"GroupName": "apart"}))
        self.assertEqual((self.bought(answer), len(self.errors(answer))), ([("m5.large", "a", 7)], 1))
        self.fails("InvalidPlacementGroup.InUse", self.ec2.delete_placement_group, GroupName="apart")
        self.ec2.terminate_instances(InstanceIds=answer["Instances"][0]["InstanceIds"])
        self.ec2.delete_placement_group(GroupName="apart")
        self.fails("InvalidPlacementGroup.Unknown", self.ec2.describe_placement_groups, GroupIds=[spread["GroupId"]])


class Images(FakeCase):
    def test_every_family_has_parameters_and_images(self):
        eks, ssm = "/aws/service/eks/optimized-ami/1.36", self.fake.client("ssm")
        paths = [f"{eks}/amazon-linux-2023/{a}/{v}/recommended/image_id" for a, v in (
            ("x86_64", "standard"), ("x86_64", "nvidia"), ("x86_64", "neuron"), ("arm64", "standard"), ("arm64", "nvidia"))]
        paths += [f"/aws/service/bottlerocket/aws-k8s-1.36{v}/{a}/latest/image_id" for v in ("", "-nvidia") for a in ("x86_64", "arm64")]
        paths += [f"/aws/service/ami-windows-latest/Windows_Server-{y}-English-Core-EKS_Optimized-1.36/image_id" for y in (2019, 2022, 2025)]
        values = [ssm.get_parameter(Name=path)["Parameter"]["Value"] for path in paths]
        told = self.ec2.describe_images(ImageIds=values)["Images"]
        self.assertEqual({i["ImageId"] for i in told}, set(values))
        self.assertEqual({i["Architecture"] for i in told}, {"x86_64", "arm64"})
        below = ssm.get_parameters_by_path(Path=f"{eks}/amazon-linux-2023/arm64/standard", Recursive=True)["Parameters"]
        self.assertEqual(len(below), 3)
        self.fails("ParameterNotFound", ssm.get_parameter, Name=f"{eks}/amazon-linux-2/recommended/image_id")
        self.fake.ask("PUT", "/cluster", {"version": "1.32"})
        old = ssm.get_parameter(Name="/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id")["Parameter"]["Value"]
        self.assertIn("amazon-eks-gpu-node-1.32", self.ec2.describe_images(ImageIds=[old])["Images"][0]["Name"])
        self.fake.ask("PUT", "/cluster", {"version": "1.36"})

    def test_images_change_and_are_deprecated(self):
        path = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/neuron/recommended/image_id"
        before = self.fake.client("ssm").get_parameter(Name=path)["Parameter"]["Value"]
        made = self.fake.ask("POST", "/images", {"name": "newer", "owner": "602401143452", "parameters": [path]})["id"]
        self.assertEqual(self.fake.client("ssm").get_parameter(Name=path)["Parameter"]["Value"], made)
        self.fake.ask("PATCH", f"/images/{before}", {"deprecated": "2026-01-01T00:00:00.000Z"})
        asked = {"Filters": [{"Name": "image-id", "Values": [before, made]}]}
        self.assertEqual([i["ImageId"] for i in self.ec2.describe_images(**asked)["Images"]], [made])
        told = {i["ImageId"]: i for i in self.ec2.describe_images(**asked, IncludeDeprecated=True)["Images"]}
        self.assertEqual((told[before]["DeprecationTime"], "DeprecationTime" in told[made]), ("2026-01-01T00:00:00.000Z", False))
        self.assertGreater(told[made]["CreationDate"], told[before]["CreationDate"])
        self.fake.ask("DELETE", f"/images/{before}")
        self.fails("InvalidAMIID.NotFound", self.ec2.describe_images, ImageIds=[before])
        mine = self.ec2.describe_images(Owners=["self"], Filters=[{"Name": "tag:team", "Values": ["platform"]}])["Images"]
        self.assertEqual(len(mine), 3)


class Neighbors(FakeCase):
    def test_the_cluster(self):
        eks = self.fake.client("eks")
        told = eks.describe_cluster(name=CLUSTER)["cluster"]
        self.assertEqual((told["version"], told["status"], told["kubernetesNetworkConfig"]["serviceIpv4Cidr"]), ("1.36", "ACTIVE", "10.100.0.0/16"))
        self.assertEqual(told["resourcesVpcConfig"]["clusterSecurityGroupId"], self.world["security_groups"]["cluster"])
        self.fake.ask("PUT", "/cluster", {"endpoint": "https://127.0.0.1:6443", "certificate_authority": "Q0E=", "service_cidr": "fd00::/108"})
        told = eks.describe_cluster(name=CLUSTER)["cluster"]
        self.assertEqual((told["endpoint"], told["certificateAuthority"]["data"]), ("https://127.0.0.1:6443", "Q0E="))
        self.assertEqual((told["kubernetesNetworkConfig"]["ipFamily"], told["kubernetesNetworkConfig"]["serviceIpv6Cidr"]), ("ipv6", "fd00::/108"))
        self.fake.ask("PUT", "/cluster", {"service_cidr": "10.100.0.0/16"})
        self.fails("ResourceNotFoundException", eks.describe_cluster, name="other")
        arc = self.fake.client("arc-zonal-shift")
        self.assertEqual(arc.get_managed_resource(resourceIdentifier=told["arn"])["zonalShifts"], [])
        self.fake.ask("PUT", "/zonal-shifts", [{"away_from": "use1-az6"}])
        self.assertEqual(arc.get_managed_resource(resourceIdentifier=told["arn"])["zonalShifts"][0]["awayFrom"], "use1-az6")

    def test_who_am_i_and_profiles(self):
        self.assertEqual(self.fake.client("sts").get_caller_identity()["Account"], self.world["account"])
        iam, path = self.fake.client("iam"), f"/karpenter/{REGION}/{CLUSTER}/uid/"
        iam.create_instance_profile(InstanceProfileName="p1", Path=path, Tags=[{"Key": "a", "Value": "b"}])
        iam.create_instance_profile(InstanceProfileName="p2")
        self.assertEqual([p["InstanceProfileName"] for p in iam.list_instance_profiles(PathPrefix=f"/karpenter/{REGION}/{CLUSTER}/")["InstanceProfiles"]], ["p1"])
        self.fails("EntityAlreadyExists", iam.create_instance_profile, InstanceProfileName="p1")
        message = self.fails("NoSuchEntity", iam.add_role_to_instance_profile, InstanceProfileName="p1", RoleName="nobody")
        self.assertIn("nobody", message)
        iam.add_role_to_instance_profile(InstanceProfileName="p1", RoleName=self.world["roles"][0])
        self.fails("LimitExceeded", iam.add_role_to_instance_profile, InstanceProfileName="p1", RoleName=self.world["roles"][1])
        self.fails("DeleteConflict", iam.delete_instance_profile, InstanceProfileName="p1")
        iam.remove_role_from_instance_profile(InstanceProfileName="p1", RoleName=self.world["roles"][0])
        iam.delete_instance_profile(InstanceProfileName="p1")
        self.fails("NoSuchEntity", iam.get_instance_profile, InstanceProfileName="p1")

    def test_messages_of_every_kind(self):
        sqs, ident = self.fake.client("sqs"), self.one()
        queue = sqs.get_queue_url(QueueName=CLUSTER)["QueueUrl"]
        self.fails("AWS.SimpleQueueService.NonExistentQueue", self.fake.new_client("sqs", 0, "eu-west-1").get_queue_url, QueueName=CLUSTER)
        for kind, title in (
            ("spot_interruption", "EC2 Spot Instance Interruption Warning"), ("rebalance", "EC2 Instance Rebalance Recommendation"),
            ("state_change", "EC2 Instance State-change Notification"), ("scheduled_change", "AWS Health Event"),
            ("reservation_interruption", "EC2 Capacity Reservation Instance Interruption Warning"), (None, None),
        ):
            asked = {"kind": kind, "machines": [ident], "age_seconds": 5} if kind else {"raw": "no JSON {"}
            self.fake.ask("POST", "/messages", asked)
            got = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20, MaxNumberOfMessages=10, VisibilityTimeout=20)["Messages"]
            self.assertEqual(len(got), 1)
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=got[0]["ReceiptHandle"])
            if kind is None:
                self.assertEqual(got[0]["Body"], "no JSON {")
                continue
            told = json.loads(got[0]["Body"])
            self.assertEqual((told["version"], told["detail-type"], told["region"]), ("0", title, REGION))
            named = told["detail"].get("instance-id") or told["detail"]["affectedEntities"][0]["entityValue"]
            self.assertEqual(named, ident)
        asked = {"kind": "spot_interruption", "machines": [ident], "terminate_after_seconds": 0.1}
        self.fake.ask("POST", "/messages", asked)
        until(lambda: self.described(ident)["State"]["Name"] == "terminated")
        self.assertEqual(len(sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20)["Messages"]), 1)

    def test_a_queue_that_is_waited_on_stops_nothing(self):
        queue = self.fake.client("sqs").get_queue_url(QueueName=CLUSTER)["QueueUrl"]
        code = "import sys, boto3; boto3.client('sqs', endpoint_url=sys.argv[1], region_name='us-east-1').receive_message(QueueUrl=sys.argv[2], WaitTimeSeconds=20)"
        keys = {"AWS_ACCESS_KEY_ID": "t", "AWS_SECRET_ACCESS_KEY": "t"}
        waiting = subprocess.Popen([sys.executable, "-c", code, self.fake.url, queue], env={**os.environ, **keys})
        self.ec2.describe_instances()
        self.fake.ask("POST", "/messages", {"raw": "x"})
        self.assertEqual(waiting.wait(WAIT_MAX), 0)
        told = until(lambda: self.fake.ask("GET", "/requests?service=sqs&action=ReceiveMessage"))
        self.assertEqual(told[0]["status"], 200)
        for message in self.fake.client("sqs").receive_message(QueueUrl=queue).get("Messages", []):
            self.fake.client("sqs").delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


class Faults(FakeCase):
    def test_a_share_of_calls_is_throttled_the_same_way_for_a_seed(self):
        def run(fake):
            fake.ask("POST", "/faults", {"kind": "throttle", "action": "DescribeSubnets", "share": 0.33})
            seen = []
            for _ in range(60):
                try:
                    fake.client("ec2").describe_subnets()
                    seen.append(True)
                except ClientError as error:
                    self.assertEqual(error.response["Error"]["Code"], "RequestLimitExceeded")
                    seen.append(False)
            fake.client("ec2").describe_security_groups()
            return seen

        first, second = Fake(), Fake()
        seen = run(first)
        self.assertEqual(seen, run(second))
        first.end()
        second.end()
        self.assertTrue(10 <= seen.count(False) <= 30, seen)

    def test_every_service_says_it_in_its_own_words(self):
        calls = {
            "ec2": (self.ec2.describe_vpcs, {"throttle": "RequestLimitExceeded", "expired": "RequestExpired", "unauthorized": "UnauthorizedOperation", "internal": "InternalError", "unavailable": "Unavailable"}),
            "iam": (self.fake.client("iam").list_roles, {"throttle": "Throttling", "expired": "ExpiredToken", "unauthorized": "AccessDenied"}),
            "ssm": (self.fake.client("ssm").describe_parameters, {"throttle": "ThrottlingException", "expired": "ExpiredTokenException"}),
            "sqs": (self.fake.client("sqs").list_queues, {"unauthorized": "AccessDeniedException"}),
            "eks": (lambda: self.fake.client("eks").describe_cluster(name=CLUSTER), {"unauthorized": "AccessDeniedException"}),
            "sts": (self.fake.client("sts").get_caller_identity, {"expired": "ExpiredToken"}),
        }
        for service, (call, codes) in calls.items():
            for kind, code in codes.items():
                self.fake.ask("POST", "/faults", {"kind": kind, "service": service, "times": 1})
                self.fails(code, call)
                call()

    def test_credentials_expire_for_a_while(self):
        self.fake.ask("POST", "/faults", {"kind": "expired", "seconds": 36000})
        self.fails("RequestExpired", self.ec2.describe_vpcs)
        self.fails("ExpiredTokenException", self.fake.client("ssm").describe_parameters)
        self.fake.ask("DELETE", "/faults")
        self.fake.ask("POST", "/faults", {"kind": "expired", "seconds": 0.2})

        def works():
            try:
                return self.ec2.describe_vpcs()
            except ClientError:
                return None

        until(works)

    def test_a_lost_answer_costs_no_second_machine(self):
        name, n_before = self.template(), len(self.fake.ask("GET", "/machines"))
        self.fake.ask("POST", "/faults", {"kind": "lost", "action": "CreateFleet", "times": 2})
        with self.assertRaises(ConnectionClosedError):
            self.fleet([("m5.large", "a")], template=name)
        self.assertEqual(len(self.fake.ask("GET", "/machines")), n_before + 1)
        patient = self.fake.new_client("ec2", retries=3)
        self.ec2, impatient = patient, self.ec2
        answer = self.fleet([("m5.large", "a")], template=name)
        self.ec2 = impatient
        self.assertEqual(len(self.fake.ask("GET", "/machines")), n_before + 2)
        told = self.fake.ask("GET", "/requests?action=CreateFleet")
        self.assertEqual([e.get("fault", {}).get("kind") for e in told], ["lost", "lost", None])
        self.assertEqual(told[1]["machines"], told[2]["machines"])
        self.assertEqual(told[2]["machines"], answer["Instances"][0]["InstanceIds"])

    def test_other_faults(self):
        self.fake.ask("POST", "/faults", {"kind": "refused", "action": "CreateFleet", "times": 1})
        n_before = len(self.fake.ask("GET", "/machines"))
        with self.assertRaises(ConnectionClosedError):
            self.fleet([("m5.large", "a")])
        self.assertEqual(len(self.fake.ask("GET", "/machines")), n_before)
        error = {"kind": "error", "service": "ec2", "action": "Create*", "code": "UnauthorizedOperation", "status": 403, "message": "explicit deny", "dry_run": True}
        self.fake.ask("POST", "/faults", error)
        self.assertEqual(self.fails("UnauthorizedOperation", self.fleet, pools=[("m5.large", "a")], DryRun=True), "explicit deny")
        self.fleet([("m5.large", "a")])
        self.fake.ask("DELETE", "/faults")
        self.fake.ask("POST", "/faults", {"kind": "internal", "action": "DescribeVpcs", "after": 1, "times": 1})
        self.ec2.describe_vpcs()
        self.fails("InternalError", self.ec2.describe_vpcs)
        self.fake.ask("POST", "/faults", {"kind": "latency", "action": "DescribeVpcs", "milliseconds": 300})
        self.ec2.describe_vpcs()
        self.assertGreaterEqual(self.fake.ask("GET", "/requests?action=DescribeVpcs")[-1]["ms"], 300)


class Machines(FakeCase):
    def test_states_take_their_time(self):
        self.fake.ask("PUT", "/settings", {"boot_seconds": 36000, "shutdown_seconds": 36000})
        slow = self.one()
        self.assertEqual(self.described(slow)["State"]["Name"], "pending")
        self.fake.ask("PUT", "/settings", {"boot_seconds": 0.2})
        ident = self.one()
        until(lambda: self.described(ident)["State"]["Name"] == "running")
        told = self.ec2.terminate_instances(InstanceIds=[ident])["TerminatingInstances"][0]
        self.assertEqual((told["PreviousState"]["Name"], told["CurrentState"]["Name"]), ("running", "shutting-down"))
        self.assertEqual(self.described(ident)["State"]["Name"], "shutting-down")
        self.fake.ask("PUT", "/settings", {"shutdown_seconds": 0.2})
        self.ec2.terminate_instances(InstanceIds=[slow])
        until(lambda: self.described(slow)["State"]["Name"] == "terminated")
        self.fails("InvalidInstanceID.NotFound", self.described, ident="i-00000000000000000")

    def test_a_new_machine_is_not_listed_at_once(self):
        def listed(ident):
            return ident in [i["InstanceId"] for r in self.ec2.describe_instances()["Reservations"] for i in r["Instances"]]

        self.fake.ask("PUT", "/settings", {"list_delay_seconds": 36000})
        ident = self.one()
        self.assertFalse(listed(ident))
        self.fails("InvalidInstanceID.NotFound", self.described, ident=ident)
        self.fails("InvalidInstanceID.NotFound", self.ec2.create_tags, Resources=[ident], Tags=[{"Key": "a", "Value": "b"}])
        self.fails("InvalidInstanceID.NotFound", self.ec2.terminate_instances, InstanceIds=[ident])
        self.assertIn(ident, [m["id"] for m in self.fake.ask("GET", "/machines")])
        self.fake.ask("PUT", "/settings", {"list_delay_seconds": 0.2})
        ident = self.one()
        until(lambda: listed(ident))

    def test_filters_of_one_name_all_hold_and_lists_have_pages(self):
        tags = [{"a": "1"}, {"b": "1"}, {"a": "1", "b": "1"}]
        made = [self.one(TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in t.items()]}]) for t in tags]

        def listed(*filters, **more):
            filters = [{"Name": name, "Values": values} for name, *values in filters]
            pages = self.ec2.get_paginator("describe_instances").paginate(Filters=filters, **more)
            return [i["InstanceId"] for page in pages for r in page["Reservations"] for i in r["Instances"]]

        self.assertEqual(listed(("tag-key", "a"), ("tag-key", "b")), [made[2]])
        self.assertEqual(listed(("tag:a", "1"), ("instance-state-name", "running"), PaginationConfig={"PageSize": 1}), [made[0], made[2]])
        self.ec2.create_tags(Resources=[made[0]], Tags=[{"Key": "b", "Value": "2"}])
        self.assertEqual(listed(("tag:b", "2")), [made[0]])

    def test_behind_the_back(self):
        asked = {"type": "m5.large", "subnet": self.subnet(), "image": self.image(), "tags": {"karpenter.sh/nodepool": "x"}, "age_seconds": 3600}
        made = self.fake.ask("POST", "/machines", asked)
        told = self.described(made["id"])
        self.assertGreater(time.time() - told["LaunchTime"].timestamp(), 3500)
        self.fake.ask("PATCH", f"/machines/{made['id']}", {"state": "stopped"})
        self.assertEqual(self.described(made["id"])["State"]["Name"], "stopped")
        self.fake.ask("DELETE", f"/machines/{made['id']}?at_once=1")
        self.assertEqual(self.described(made["id"])["State"]["Name"], "terminated")

    def test_status_checks_and_events(self):
        ident = self.one()

        def listed(name, *values):
            told = self.ec2.describe_instance_status(Filters=[{"Name": name, "Values": list(values)}])["InstanceStatuses"]
            return {s["InstanceId"]: s for s in told}

        self.assertNotIn(ident, listed("instance-status.status", "impaired"))
        self.fake.ask("PATCH", f"/machines/{ident}", {"instance_status": "impaired", "since_seconds": 300, "events": ["instance-retirement"]})
        status = listed("instance-status.status", "impaired")[ident]
        since = status["InstanceStatus"]["Details"][0]["ImpairedSince"].timestamp()
        self.assertGreater(time.time() - since, 298)
        self.assertEqual(listed("event.code", "instance-retirement", "instance-stop")[ident]["Events"][0]["Code"], "instance-retirement")
        self.assertNotIn(ident, listed("system-status.status", "impaired"))


class Control(FakeCase):
    def test_all_requests_are_logged(self):
        self.fleet([("m5.large", "a")])
        self.fails("InvalidInstanceID.NotFound", self.described, ident="i-00000000000000000")
        told = self.fake.ask("GET", "/requests?service=ec2")
        self.assertEqual([e["action"] for e in told], ["CreateLaunchTemplate", "CreateFleet", "DescribeInstances"])
        fleet = told[1]
        override = {"InstanceType": "m5.large", "SubnetId": self.subnet()}
        self.assertEqual(fleet["params"]["LaunchTemplateConfigs"][0]["Overrides"], [override])
        self.assertEqual((fleet["status"], fleet["error"], len(fleet["machines"])), (200, None, 1))
        self.assertEqual((told[2]["status"], told[2]["error"]), (400, "InvalidInstanceID.NotFound"))
        self.assertEqual(self.fake.ask("GET", f"/requests?since={fleet['n']}"), told[2:])
        lines = [json.loads(line) for line in SHARED["log"].read_text().splitlines()]
        self.assertEqual(lines[-3:], told)
        self.assertEqual(self.fake.ask("GET", "/requests?service=ssm")[0]["action"], "GetParameter")

    def test_bad_requests_name_the_way_out(self):
        for method, path, body, words in (
            ("GET", "/nowhere", None, "GET /_fake/nowhere: it does not exist: GET /_fake lists what does"),
            ("POST", "/faults", {"kind": "fire"}, "kind 'fire' is not one of throttle, expired"),
            ("POST", "/faults", {"kind": "throttle", "zone": "a"}, "a fault has no 'zone'; it has action"),
            ("DELETE", "/shortages/none", None, "there is no shortage 'none'"),
            ("PUT", "/settings", {"speed": 1}, "this has no 'speed'; it has boot_seconds"),
            ("PATCH", "/machines/i-0", {}, "there is no machine 'i-0': GET /_fake/machines lists them"),
            ("PATCH", f"/subnets/{self.subnet()}", {}, "it needs 'free'"),
            ("POST", "/messages", {"kind": "x"}, "a message has machines, and a kind of spot_interruption"),
            ("POST", "/reservations", {"zone": "us-east-1a"}, "a reservation has type, zone"),
        ):
            status, value = self.fake.try_ask(method, path, body)
            self.assertEqual(status, 400)
            self.assertIn(words, value["error"])

    def test_the_page_names_all_that_there_is(self):
        page = (HERE / "README.md").read_text()
        for line in self.fake.ask("GET", ""):
            self.assertIn(f"`{line}", page)

    def test_ids_follow_from_the_seed(self):
        fake = Fake()
        self.assertEqual(fake.ask("GET", "/world")["subnets"], self.world["subnets"])
        fake.end()

    def test_an_unknown_region_is_told(self):
        words = [sys.executable, str(HERE / "fake_ec2.py"), "--region", "mars-1"]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=WAIT_MAX)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("--region mars-1: not in", ended.stderr)


if __name__ == "__main__":
    unittest.main()
