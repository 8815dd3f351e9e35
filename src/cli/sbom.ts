import { commit, components } from '#src/lib/build-info.ts' with { type: 'macro' }
import { VERSION } from '#src/lib/version.ts'
import project from '../../package.json' with { type: 'json' }
import { print } from './print.ts'

const formats = { cyclonedx: () => cycloneDx(), spdx: () => spdx() }

/**
 * Prints a software bill of materials of this executable: its libraries, the runtime, and the libraries that
 * are linked into the runtime. Scanners that read files do not find the linked libraries.
 */
export const sbom = (options: { format: keyof typeof formats }): void =>
  print(JSON.stringify(formats[options.format](), null, 2))

const source = Object.freeze(commit())
/**
 * Libraries that are linked into the runtime. `process.versions` contains the version or commit of each
 * library.
 */
const LINKED = [
  ...['ares', 'boringssl', 'icu', 'libarchive', 'libdeflate', 'llhttp', 'lolhtml', 'lshpack', 'mimalloc'],
  ...['picohttpparser', 'sqlite', 'tinycc', 'uwebsockets', 'webkit', 'zlib', 'zstd'],
]

/** Returns all components, each with its purl: https://github.com/package-url/purl-spec */
const all = () => [
  ...[...components(), { name: 'bun', version: Bun.version, license: 'MIT', sha512: '' }].map(each => ({
    ...each,
    purl: `pkg:npm/${each.name.replace('@', '%40')}@${each.version}`,
  })),
  ...LINKED.map(name => {
    const version = process.versions[name] ?? 'unknown'
    return { name, version, license: 'NOASSERTION', sha512: '', purl: `pkg:generic/${name}@${version}` }
  }),
]

const hexOf = (base64: string): string => Buffer.from(base64, 'base64').toString('hex')

/** Builds the document of https://cyclonedx.org/docs/1.6/json/ */
const cycloneDx = () => ({
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  version: 1,
  metadata: {
    timestamp: source.time,
    component: {
      type: 'application',
      'bom-ref': project.name,
      name: project.name,
      version: VERSION,
      licenses: [{ expression: project.license }],
      properties: [{ name: 'commit', value: source.id }],
    },
  },
  components: all().map(({ name, version, license, sha512, purl }) => ({
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    ...(sha512 && { hashes: [{ alg: 'SHA-512', content: hexOf(sha512) }] }),
    ...(license !== 'NOASSERTION' && { licenses: [{ expression: license }] }),
  })),
})

/** Builds the document of https://spdx.github.io/spdx-spec/v2.3/ */
const spdx = () => {
  const packageOf = (id: string, name: string, version: string, license: string) => ({
    SPDXID: `SPDXRef-${id.replace(/[^\w.-]/g, '-').replaceAll('_', '-')}`,
    name,
    versionInfo: version,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: license,
    copyrightText: 'NOASSERTION',
  })
  const root = packageOf(project.name, project.name, VERSION, project.license)
  const libraries = all().map(({ name, version, license, sha512, purl }) => ({
    ...packageOf(`${name}-${version}`, name, version, license),
    ...(sha512 && { checksums: [{ algorithm: 'SHA512', checksumValue: hexOf(sha512) }] }),
    externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
  }))
  return {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `${project.name}-${VERSION}`,
    documentNamespace: `https://spdx.org/spdxdocs/${project.name}-${VERSION}-${source.id}`,
    creationInfo: { created: source.time, creators: [`Tool: ${project.name}-${VERSION}`] },
    packages: [root, ...libraries],
    relationships: [
      { spdxElementId: 'SPDXRef-DOCUMENT', relationshipType: 'DESCRIBES', relatedSpdxElement: root.SPDXID },
      ...libraries.map(({ SPDXID }) => ({
        spdxElementId: root.SPDXID,
        relationshipType: 'CONTAINS',
        relatedSpdxElement: SPDXID,
      })),
    ],
  }
}
