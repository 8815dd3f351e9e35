/**
 * Reasons for refusing a SAML message. The audit log and the server's log contain the reason. The browser
 * never gets the reason, because the sender of a forged message could use the reason to improve the message.
 */
export type SamlReason =
  | 'too_large'
  | 'too_costly'
  | 'bad_encoding'
  | 'bad_xml'
  | 'bad_shape'
  | 'no_certificate'
  | 'unsigned'
  | 'bad_algorithm'
  | 'bad_signature'
  | 'not_decrypted'
  | 'status'
  | 'no_assertion'
  | 'wrong_issuer'
  | 'wrong_destination'
  | 'wrong_recipient'
  | 'wrong_audience'
  | 'wrong_request'
  | 'unsolicited'
  | 'bad_time'
  | 'not_yet_valid'
  | 'expired'
  | 'old_authentication'
  | 'no_subject'

/**
 * A refused SAML message. `detail` is for the log, and is cut after 200 characters. The administrator also
 * gets the detail of refused metadata.
 */
export class SamlError extends Error {
  override readonly name = 'SamlError'
  readonly reason: SamlReason

  constructor(reason: SamlReason, detail: string = reason, options?: ErrorOptions) {
    super(detail.slice(0, 200), options)
    this.reason = reason
  }
}
