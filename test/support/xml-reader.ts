import { openXmlReader } from '#src/directory/identity-providers/xml-reader.ts'

/** One process for all servers of a test file: starting one takes longer than most tests. */
export const xmlReader = openXmlReader()
