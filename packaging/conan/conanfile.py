# SPDX-License-Identifier: Apache-2.0
"""A recipe of Conan 2 that takes along the tree in which it lies (docs/install.md)."""
import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy
from conan.tools.gnu import PkgConfigDeps

LIBRARY = ("fmt/[>=9]", "pcre2/[>=10.42]", "rapidjson/[>=1.1]", "tl-expected/[>=1.0]", "utf8proc/[>=2.8]", "xxhash/[>=0.8]", "yaml-cpp/[>=0.7]")
PROGRAM = ("cli11/[>=2.3]", "editline/[>=3.1]")
SERVER = ("boost/[>=1.74]", "prometheus-cpp/[>=1.1]")
TREE = ("CMakeLists.txt", "LICENSE", "*.md", "apps/*", "cmake/*", "docs/*", "examples/*", "include/*", "kit/*", "models/*", "src/*", "tests/vectors/*")


class Foretoken(ConanFile):
    name = "foretoken"
    version = "0.1.0"
    description = "Language models with speculative decoding, on CPUs"
    license = "Apache-2.0"
    package_type = "static-library"
    settings = "os", "compiler", "build_type", "arch"
    options = {"program": [True, False], "server": [True, False]}
    default_options = {"program": False, "server": False, "boost/*:header_only": True}

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in TREE:
            copy(self, pattern, src=root, dst=self.export_sources_folder)

    def requirements(self):
        program = self.options.program or self.options.server
        for name in LIBRARY + (PROGRAM if program else ()) + (SERVER if self.options.server else ()):
            self.requires(name)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for name in ("rapidjson", "xxhash"):  # headers that CMake is not asked for
            toolchain.extra_cxxflags.append(f"-I{self.dependencies[name].cpp_info.includedir}")
        program = bool(self.options.program or self.options.server)
        toolchain.cache_variables.update(FORETOKEN_APPS=program, FORETOKEN_SERVER=bool(self.options.server), FORETOKEN_UNITY=True, FORETOKEN_TESTS=False,
                                         FORETOKEN_EXAMPLES=False, FORETOKEN_TRAIN=False, FORETOKEN_MPI=False)
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # the package brings its own foretokenConfig.cmake
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "foretoken"))
