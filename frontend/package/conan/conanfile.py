"""The library, its header and the program as a package of Conan 2: `conan create frontend/package/conan`.

tests/package/recipes.sh runs this recipe with stand-ins for Conan's classes.
"""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps


class Ngrad(ConanFile):
    name = "ngrad"
    description = "A compiler for computation graphs of training steps, in C"
    license = "Apache-2.0"
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._root, "frontend", "api", "ngrad.h"))
        self.version = re.search(r'NG_VERSION "(.*?)"', header).group(1)

    def export_sources(self):
        for pattern in "CMakeLists.txt", "LICENSE", "ir/*", "passes/*", "backends/*", "frontend/*", "models/*", "docs/*", "tests/*":
            copy(self, pattern, self._root, self.export_sources_folder)

    def requirements(self):
        for library in "libyaml/0.2.5", "jansson/2.14", "nettle/3.9.1", "libzip/1.10.1", "zlib/[>=1.2.11 <2]":
            self.requires(library)

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")
        self.tool_requires("pkgconf/[>=2.0]")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("ngrad is for Linux; emitted C has no such bounds")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        PkgConfigDeps(self).generate()
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.variables["BUILD_TESTING"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # The package's own ngradConfig.cmake defines ngrad::ngrad, ngrad::program and ngrad_add_kernel.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "ngrad"))
        self.cpp_info.set_property("pkg_config_name", "ngrad")
        self.cpp_info.libs = ["ngrad"]
