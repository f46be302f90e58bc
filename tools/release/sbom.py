# SPDX-License-Identifier: Apache-2.0
"""What a release is made of, as a software bill of materials: CycloneDX 1.5 in JSON.

Contract: the packages are those of this machine, asked of dpkg: the owners of the libraries that the program and libforetoken.so.1 load, and what
packages.txt names for building and for several machines. The latter come in as headers and tools.
"""
import datetime
import json
import uuid

import debian
import debs
import native_program

GROUPS = ("build", "mpi")


def component(package, use):
    return {"type": "library", "name": package.name, "version": package.version, "bom-ref": f"{use}/{package.name}",
            "purl": f"pkg:deb/debian/{package.name}@{package.version.replace('+', '%2B').replace(':', '%3A')}?arch={package.architecture}",
            "scope": "required" if use == "run" else "excluded", "properties": [{"name": "foretoken:use", "value": use}]}


def named_packages():
    """The packages that packages.txt names in GROUPS."""
    rows = (line.split() for line in (debs.ROOT / "packages.txt").read_text().splitlines() if not line.startswith("#"))
    return [row[0] for row in rows if len(row) > 1 and row[1] in GROUPS]


def build(built, version, epoch, folder, _root):
    """foretoken-VERSION.cdx.json in `folder`."""
    loaded = native_program.libraries([built / "foretoken", built / "src/capi/libforetoken.so.1"], native_program.NONE)
    run = debian.installed(*sorted({native_program.owner(path) for path in loaded.values()}))
    components = [component(package, "run") for package in run]
    components += [component(package, "build") for package in debian.installed(*named_packages())]
    program = {"type": "application", "name": "foretoken", "version": version, "bom-ref": "foretoken", "licenses": [{"license": {"id": "Apache-2.0"}}]}
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"timestamp": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "component": program},
            "components": components,
            "dependencies": [{"ref": "foretoken", "dependsOn": [one["bom-ref"] for one in components if one["scope"] == "required"]}]}
    bill["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill))}"
    path = folder / f"foretoken-{version}.cdx.json"
    path.write_text(json.dumps(bill, indent=1) + "\n")
    return [path]
