import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { $ } from 'bun'
import type { Build } from './build.ts'
import { names } from './names.ts'
import { lay, tar } from './pack.ts'

/**
 * Libraries that `ldd` lists for the runtime, and libraries that glibc loads to look up host names. Debian's
 * libc6 contains all of them.
 */
const LIBRARIES = [
  'libc.so.6',
  'libm.so.6',
  'libpthread.so.0',
  'libdl.so.2',
  'libresolv.so.2',
  'libnss_dns.so.2',
  'libnss_files.so.2',
]
/** Folder of the libraries and path of the dynamic loader, by Debian's name of the architecture. */
const PLATFORMS: Record<string, { libraries: string; loader: string }> = {
  amd64: { libraries: 'lib/x86_64-linux-gnu', loader: 'lib64/ld-linux-x86-64.so.2' },
  arm64: { libraries: 'lib/aarch64-linux-gnu', loader: 'lib/ld-linux-aarch64.so.1' },
}
/**
 * User id of `nonroot` in distroless images. Container policies recognize this id, and no account of a host
 * has it.
 */
const USER = 65_532

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/**
 * Fetches the newest libc6 for an architecture from this machine's Debian release, and unpacks it.
 *
 * @returns the folder, and the package's entry for `status.d`, the list of packages that scanners read
 */
const libc = async (build: Build, architecture: string): Promise<{ folder: string; entry: string }> => {
  const [state, at, folder] = [build.scratch(), build.scratch(), build.scratch()]
  await $`mkdir -p ${state}/state/lists/partial ${state}/cache/archives/partial && touch ${state}/status && chmod 777 ${at}`
  const options = Object.entries({
    'Dir::State': `${state}/state`,
    'Dir::State::status': `${state}/status`,
    'Dir::Cache': `${state}/cache`,
    // Only Debian's own repositories are used, even if this machine also uses repositories of third parties.
    'Dir::Etc::SourceList': '/etc/apt/sources.list.d/debian.sources',
    'Dir::Etc::SourceParts': '/dev/null',
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': 'root',
  }).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  await $`apt-get ${options} -qq update && apt-get ${options} -qq download libc6`.cwd(at).quiet()
  await $`dpkg-deb -x ${at}/libc6_*.deb ${folder}`.quiet()
  const entry = await $`dpkg-deb -f ${at}/libc6_*.deb`.text()
  return { folder, entry: `${entry.trim()}\nStatus: install ok installed\n` }
}

/**
 * Writes a container image without a container engine, as a tar file for `podman load` or `docker load`:
 * https://github.com/opencontainers/image-spec/blob/main/image-layout.md
 */
export const image = async (build: Build, architecture: string, executable: string): Promise<void> => {
  const platform = PLATFORMS[architecture]
  if (!platform) throw new Error(`no image for ${architecture}`)
  const { version, description, license } = build.project
  const base = build.scratch()
  const { folder: debian, entry } = await libc(build, architecture)
  const copied = [
    ...LIBRARIES.map(name => `${platform.libraries}/${name}`),
    platform.loader,
    'usr/share/doc/libc6/copyright',
  ]
  await lay(base, [
    ...copied.map(path => ({
      path,
      content: { from: join(debian, path) },
      mode: path.startsWith('usr/') ? 0o644 : 0o755,
    })),
    { path: 'etc/passwd', content: `gatehouse:x:${USER}:${USER}::/data:/sbin/nologin\n` },
    { path: 'etc/group', content: `gatehouse:x:${USER}:\n` },
    { path: 'etc/nsswitch.conf', content: 'hosts: files dns\n' },
    // Scanners read the distribution from `os-release` and the package from `status.d/libc6`.
    { path: 'etc/os-release', content: { from: '/etc/os-release' } },
    { path: 'var/lib/dpkg/status.d/libc6', content: entry },
  ])
  const program = build.scratch()
  await lay(program, [
    { path: 'usr/local/bin/gatehouse', content: { from: executable }, mode: 0o755 },
    { path: 'usr/share/doc/gatehouse/LICENSE', content: { from: join(build.root, 'LICENSE') } },
  ])

  const layout = build.scratch()
  const blobs = join(layout, 'blobs/sha256')
  const put = async (bytes: Uint8Array<ArrayBuffer>) => {
    const digest = sha256(bytes)
    await Bun.write(join(blobs, digest), bytes)
    return { digest: `sha256:${digest}`, size: bytes.length }
  }
  const layers = []
  for (const [folder, owned] of [
    [base, true],
    [program, false],
  ] as const) {
    const file = join(build.scratch(), 'layer.tar.gz')
    // The base layer contains /tmp and the data directory, which need special modes and owners. `tar` would
    // give all entries the same owner.
    await (owned ? baseLayer(folder, file, build.epoch) : tar(folder, file, build.epoch))
    const bytes = await Bun.file(file).bytes()
    const diff = sha256(Bun.gunzipSync(bytes))
    layers.push({ ...(await put(bytes)), diff_id: `sha256:${diff}` })
  }
  const created = new Date(build.epoch * 1000).toISOString()
  const config = await put(
    Buffer.from(
      JSON.stringify({
        architecture,
        os: 'linux',
        created,
        config: {
          User: `${USER}:${USER}`,
          Env: ['PATH=/usr/local/bin', 'GATEHOUSE_DATA_DIR=/data', 'GATEHOUSE_HOST=::'],
          Entrypoint: ['gatehouse'],
          Cmd: ['serve'],
          WorkingDir: '/data',
          Volumes: { '/data': {} },
          ExposedPorts: { '8080/tcp': {} },
          StopSignal: 'SIGTERM',
          Healthcheck: {
            Test: ['CMD', 'gatehouse', 'healthcheck'],
            Interval: 30e9,
            Timeout: 6e9,
            StartPeriod: 5e9,
          },
          Labels: {
            'org.opencontainers.image.title': names.image,
            'org.opencontainers.image.description': description,
            'org.opencontainers.image.version': version,
            'org.opencontainers.image.licenses': license,
            'org.opencontainers.image.revision': build.commit,
          },
        },
        rootfs: { type: 'layers', diff_ids: layers.map(({ diff_id }) => diff_id) },
      }),
    ),
  )
  const type = 'application/vnd.oci.image'
  const manifest = await put(
    Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: `${type}.manifest.v1+json`,
        config: { mediaType: `${type}.config.v1+json`, ...config },
        layers: layers.map(({ digest, size }) => ({ mediaType: `${type}.layer.v1.tar+gzip`, digest, size })),
      }),
    ),
  )
  const tag = `${names.image}:${version}`
  await lay(layout, [
    { path: 'oci-layout', content: '{"imageLayoutVersion":"1.0.0"}' },
    {
      path: 'index.json',
      content: JSON.stringify({
        schemaVersion: 2,
        manifests: [
          {
            mediaType: `${type}.manifest.v1+json`,
            ...manifest,
            platform: { architecture, os: 'linux' },
            annotations: { 'org.opencontainers.image.ref.name': tag },
          },
        ],
      }),
    },
    {
      path: 'manifest.json',
      content: JSON.stringify([
        {
          Config: `blobs/${config.digest.replace(':', '/')}`,
          RepoTags: [tag, `${names.image}:latest`],
          Layers: layers.map(({ digest }) => `blobs/${digest.replace(':', '/')}`),
        },
      ]),
    },
  ])
  const file = join(build.out, `${names.image}-${version}-image-${architecture}.tar`)
  await $`tar --sort=name --format=ustar --mtime=@${build.epoch} --owner=0 --group=0 --numeric-owner -C ${layout} -cf ${file} .`.quiet()
}

const baseLayer = async (folder: string, file: string, epoch: number): Promise<void> => {
  const plain = `${file}.tar`
  const options = ['--sort=name', '--format=ustar', `--mtime=@${epoch}`, '--numeric-owner']
  await $`mkdir -p ${folder}/tmp ${folder}/data && chmod 1777 ${folder}/tmp && chmod 700 ${folder}/data`
  await $`tar ${options} --owner=0 --group=0 --exclude=./data -C ${folder} -cf ${plain} .`.quiet()
  await $`tar ${options} --owner=${USER} --group=${USER} -C ${folder} -rf ${plain} ./data`.quiet()
  await $`cat ${plain} | gzip -n > ${file}`.quiet()
}
