import { z } from 'zod'
import { isRecord } from '#src/lib/json.ts'
import { type ClaimMapping, MAX_CLAIMS, mappingProblem } from '#src/protocol/oidc/claim-mapping.ts'

/**
 * Maximum bytes of a stored mapping. The limit exists because each token request reads the mapping. 20 claims
 * with long names and paths take about 3 KiB.
 */
const MAPPING_BYTES = 4096
const ALLOWED = `An object of at most ${MAX_CLAIMS} claims and ${MAPPING_BYTES / 1024} KiB as JSON.`

/**
 * Returns the schema of a claim mapping.
 *
 * @param rule schema of one claim: a path, or an object with `from`
 * @param texts `about` describes the field. `rule` is the message for a claim that does not match the schema
 */
export const mappingOf = (
  rule: z.ZodType<string | { from: string }>,
  texts: { rule: string; about: string },
) =>
  z
    .custom<ClaimMapping>(isRecord, ALLOWED)
    .superRefine((mapping, issues) => {
      const entries = Object.entries(mapping)
      const isLarge =
        entries.length > MAX_CLAIMS || Buffer.byteLength(JSON.stringify(mapping)) > MAPPING_BYTES
      if (isLarge) return issues.addIssue({ code: 'custom', message: ALLOWED })
      for (const [name, given] of entries) {
        const { success, data } = rule.safeParse(given)
        const message = success
          ? mappingProblem(name, typeof data === 'string' ? data : data.from)
          : texts.rule
        if (message) issues.addIssue({ code: 'custom', path: [name], message })
      }
    })
    .meta({ type: 'object', additionalProperties: true, description: `${texts.about} ${ALLOWED}` })
