import type { CalledFor, Core } from '#src/context.ts'
import { chargeAdminCall } from '#src/http/rate-limits.ts'
import { AppError, type Detail } from '#src/lib/app-error.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { SamlError } from '#src/protocol/saml/error.ts'
import type { SamlSettings } from './settings.ts'

interface Source {
  metadata_xml?: string | undefined
  metadata_url?: string | undefined
}

type Found = Partial<Pick<SamlSettings, 'entity_id' | 'sso_url' | 'certificates'>>

const texts: Partial<Record<SamlError['reason'], string>> = {
  bad_xml: 'The document must be well-formed XML of at most 3,000 elements, without a DTD.',
  too_costly: 'Reading the document takes more than a second, or too much memory.',
}

/**
 * Reads the settings from the metadata document at `metadata_url`, or from `metadata_xml` if no URL is given.
 * The server never loads the document again by itself, because the certificates of a stored provider are
 * pinned. If the document cannot be read, `problems` has a detail for the field that named or contained it.
 *
 * @throws AppError 503 when too many documents wait to be read, or when the process that reads them does not
 * start
 */
export const settingsFrom = async (
  context: Core,
  organization: CalledFor,
  { metadata_xml, metadata_url }: Source,
): Promise<{ found: Found; problems: Detail[] }> => {
  const field = metadata_url === undefined ? 'metadata_xml' : 'metadata_url'
  const refused = (message: string) => ({ found: {}, problems: [{ field, code: 'bad_metadata', message }] })
  try {
    const document =
      metadata_url === undefined ? metadata_xml : await load(context, organization, metadata_url)
    if (document === undefined) return { found: {}, problems: [] }
    // A byte order mark is no part of the document: https://www.w3.org/TR/xml/#charencoding
    const xml = document.replace(/^\ufeff/, '')
    const { entity_id, sso_url, certificates } = await context.xml.run(organization.id, 'metadata', xml)
    return {
      found: { entity_id, sso_url, certificates: certificates.map(pem => pem.trim()) },
      problems: [],
    }
  } catch (error) {
    if (error instanceof AppError) throw error
    if (error instanceof SamlError) return refused(texts[error.reason] ?? error.message)
    context.log.warn({ event: 'metadata_failed', err: error }, 'a metadata document could not be loaded')
    return refused('The document could not be loaded. The log has the reason.')
  }
}

/**
 * Does what {@link settingsFrom} does, for a caller of the admin API. A call to `metadata_url` is charged to
 * the organization.
 *
 * @throws AppError 429 for too many calls; the errors of {@link settingsFrom}
 */
export const settingsForCaller = (
  context: Core,
  organization: CalledFor & { id: OrganizationId },
  source: Source,
): ReturnType<typeof settingsFrom> => {
  if (source.metadata_url !== undefined) chargeAdminCall(context, organization.id)
  return settingsFrom(context, organization, source)
}

const load = async (context: Core, organization: CalledFor, url: string): Promise<string> => {
  const headers = { accept: 'application/samlmetadata+xml, */*' }
  const answer = await context.fetch(url, { organization, headers })
  if (answer.status !== 200) throw new Error(`metadata: HTTP status ${answer.status}`)
  return answer.text()
}
