#!/bin/sh
# The vcpkg port and the Conan recipe, as far as they can be tried without vcpkg, Conan and their registries: stand-ins
# for the functions that they call say when one is called wrongly, and install from the build that is there. Usage: recipes.sh NGRAD
set -u
build=$(realpath "$(dirname "$1")")
root=$(realpath "$(dirname "$0")/../..")
# shellcheck source=tests/checks.sh
. "$root/tests/checks.sh"
for tool in cmake python3; do
  has $tool || { echo "left out: recipes: no $tool" && exit 77; }
done

cat >port.cmake <<C
set(CURRENT_PACKAGES_DIR "$work/vcpkg")
function(vcpkg_check_linkage)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 a "" SOURCE_PATH OPTIONS)
  foreach(option IN LISTS a_OPTIONS) # each is an option of this build
    string(REGEX MATCH "^-D([A-Za-z_]+)=" _ "\${option}")
    file(STRINGS "$build/CMakeCache.txt" known REGEX "^\${CMAKE_MATCH_1}:")
    if(NOT known)
      message(FATAL_ERROR "no option \${option}")
    endif()
  endforeach()
  if(a_UNPARSED_ARGUMENTS OR NOT EXISTS "\${a_SOURCE_PATH}/frontend/api/ngrad.h")
    message(FATAL_ERROR "no sources in \${a_SOURCE_PATH}, or wrong arguments: \${a_UNPARSED_ARGUMENTS}")
  endif()
endfunction()
function(vcpkg_cmake_install)
  execute_process(COMMAND \${CMAKE_COMMAND} --install "$build" --prefix "\${CURRENT_PACKAGES_DIR}" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(expect)
  foreach(path IN LISTS ARGN)
    if(NOT EXISTS "\${CURRENT_PACKAGES_DIR}/\${path}")
      message(FATAL_ERROR "not installed: \${path}")
    endif()
  endforeach()
endfunction()
function(vcpkg_copy_tools)
  cmake_parse_arguments(PARSE_ARGV 0 a AUTO_CLEAN "" TOOL_NAMES)
  list(TRANSFORM a_TOOL_NAMES PREPEND bin/)
  expect(\${a_TOOL_NAMES})
endfunction()
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 a "" CONFIG_PATH "")
  expect(\${a_CONFIG_PATH}/ngradConfig.cmake)
endfunction()
function(vcpkg_fixup_pkgconfig)
  expect(lib/pkgconfig/ngrad.pc)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 a "" "" FILE_LIST)
  file(COPY \${a_FILE_LIST} DESTINATION "\${CURRENT_PACKAGES_DIR}/share/ngrad")
endfunction()
include("$root/frontend/package/vcpkg/ngrad/portfile.cmake")
expect(include/ngrad.h share/ngrad/LICENSE)
C
cmake -P port.cmake >log 2>&1
count 'the vcpkg port'
version=$(sed -n 's/^#define NG_VERSION "\(.*\)".*/\1/p' "$root/frontend/api/ngrad.h")
python3 - "$root" "$version" >log 2>&1 <<'P'
import json, re, sys
root, version = sys.argv[1:]
port = json.load(open(f"{root}/frontend/package/vcpkg/ngrad/vcpkg.json"))
assert port["version-semver"] == version, port["version-semver"]
names = {d if isinstance(d, str) else d["name"] for d in port["dependencies"]}
# Each library that CMake requires, by the names of the registry.
found = re.findall(r'^require_library\((\w+)', open(f"{root}/CMakeLists.txt").read(), re.M)
assert found and {"yaml": "libyaml"}.keys() <= set(found), found
assert {{"yaml": "libyaml"}.get(name, name) for name in found} <= names, (found, names)
P
count 'its version and its dependencies are those of the build'

mkdir -p conan/tools && cat >conan/__init__.py <<'P' && cat >conan/errors.py <<'P2' && cat >conan/tools/cmake.py <<'P3' && cat >conan/tools/files.py <<'P4' && cat >conan/tools/gnu.py <<'P5'
class ConanFile:
    pass
P
class ConanInvalidConfiguration(Exception):
    pass
P2
import subprocess
class _Generator:
    def __init__(self, recipe): self.variables = {}
    def generate(self): pass
CMakeDeps = CMakeToolchain = _Generator
def cmake_layout(recipe): pass
class CMake:
    def __init__(self, recipe): self.recipe = recipe
    def configure(self): pass
    def build(self): pass
    def install(self):
        subprocess.run(["cmake", "--install", self.recipe.build_folder, "--prefix", self.recipe.package_folder], check=True, stdout=subprocess.DEVNULL)
P3
import pathlib, shutil
def load(recipe, path): return pathlib.Path(path).read_text()
def copy(recipe, pattern, src, dst):
    found = [path for path in pathlib.Path(src).glob(pattern)]
    assert found, pattern
    for path in found if dst.endswith("licenses") else []:
        pathlib.Path(dst).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, dst)
P4
class PkgConfigDeps:
    def __init__(self, recipe): pass
    def generate(self): pass
P5
PYTHONPATH=$work PYTHONDONTWRITEBYTECODE=1 python3 - "$root" "$build" "$work/package" "$version" >log 2>&1 <<'P'
import os, re, runpy, sys, types
root, build, package, version = sys.argv[1:]
recipe = runpy.run_path(f"{root}/frontend/package/conan/conanfile.py")["Ngrad"]()
recipe.recipe_folder, recipe.source_folder = f"{root}/frontend/package/conan", root
recipe.build_folder, recipe.package_folder, recipe.export_sources_folder = build, package, package
recipe.settings = types.SimpleNamespace(os="Linux")
required = []
recipe.requires = recipe.tool_requires = required.append
recipe.cpp_info = types.SimpleNamespace(builddirs=[], properties={})
recipe.cpp_info.set_property = recipe.cpp_info.properties.__setitem__
for step in "set_version", "export_sources", "validate", "requirements", "build_requirements", "layout", "generate", "build", "package", "package_info":
    getattr(recipe, step)()
assert recipe.version == version
names = {name.split("/")[0] for name in required}
found = re.findall(r'^require_library\((\w+)', open(f"{root}/CMakeLists.txt").read(), re.M)
assert {{"yaml": "libyaml"}.get(name, name) for name in found} <= names, (found, names)
for path in *[f"{folder}/ngradConfig.cmake" for folder in recipe.cpp_info.builddirs], "include/ngrad.h", "bin/ngrad", "licenses/LICENSE":
    assert os.path.exists(f"{package}/{path}"), path
assert any(name.startswith(f"lib{recipe.cpp_info.libs[0]}.so") for name in os.listdir(f"{package}/lib"))
P
count 'the Conan recipe'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
