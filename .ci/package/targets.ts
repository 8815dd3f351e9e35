/** A platform that executables are built for. */
export interface Target {
  name: string
  /** https://bun.com/docs/bundler/executables#supported-targets */
  bun: string
  /** `os`, `cpu` and `libc` of package.json: https://docs.npmjs.com/cli/configuring-npm/package-json */
  npm: { os: string; cpu: string; libc?: string }
  /** https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/ */
  wheel: string
  /**
   * Name of the architecture in Debian and in container images. Undefined for platforms that have no Debian
   * package and no image.
   */
  debian?: string
}

export const targets: readonly Target[] = [
  {
    name: 'linux-x64',
    bun: 'bun-linux-x64',
    npm: { os: 'linux', cpu: 'x64', libc: 'glibc' },
    wheel: 'manylinux_2_17_x86_64',
    debian: 'amd64',
  },
  {
    name: 'linux-x64-musl',
    bun: 'bun-linux-x64-musl',
    npm: { os: 'linux', cpu: 'x64', libc: 'musl' },
    wheel: 'musllinux_1_2_x86_64',
  },
  {
    name: 'linux-arm64',
    bun: 'bun-linux-arm64',
    npm: { os: 'linux', cpu: 'arm64', libc: 'glibc' },
    wheel: 'manylinux_2_17_aarch64',
    debian: 'arm64',
  },
  {
    name: 'linux-arm64-musl',
    bun: 'bun-linux-arm64-musl',
    npm: { os: 'linux', cpu: 'arm64', libc: 'musl' },
    wheel: 'musllinux_1_2_aarch64',
  },
  {
    name: 'darwin-arm64',
    bun: 'bun-darwin-arm64',
    npm: { os: 'darwin', cpu: 'arm64' },
    wheel: 'macosx_13_0_arm64',
  },
  {
    name: 'windows-x64',
    bun: 'bun-windows-x64',
    npm: { os: 'win32', cpu: 'x64' },
    wheel: 'win_amd64',
  },
]
