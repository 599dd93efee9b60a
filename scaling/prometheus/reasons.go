package prometheus

// Reasons why a sample is not valid, each with the sentence that is true when
// it is set. They are machine-readable and few, fit to be a condition's reason
// or a metric's label.
const (
	// ReasonNoData: the query matched no series. That is not zero load.
	ReasonNoData = "NoData"
	// ReasonMultipleSeries: the query returned more than one series.
	ReasonMultipleSeries = "MultipleSeries"
	// ReasonDuplicateSeries: several series of an answer for many targets are for
	// this one.
	ReasonDuplicateSeries = "DuplicateSeries"
	// ReasonInvalidValue: the value is NaN, infinite or negative.
	ReasonInvalidValue = "InvalidValue"
	// ReasonHistogramSample: the sample is a native histogram, not a number.
	ReasonHistogramSample = "HistogramSample"
	// ReasonStaleSample: the sample is older than the query allows.
	ReasonStaleSample = "StaleSample"
	// ReasonBudgetExceeded: the queries of the profile or the endpoint use up its
	// budget, so that the sample is older than the query allows, or there is none
	// yet.
	ReasonBudgetExceeded = "BudgetExceeded"
	// ReasonEndpointBusy: the query waits behind others of the endpoint, so that the
	// sample is older than the query allows, or there is none yet.
	ReasonEndpointBusy = "EndpointBusy"
	// ReasonStaleSource: the freshness query says that what the sample rests on is
	// too old, or too few of its sources are healthy.
	ReasonStaleSource = "StaleSource"
	// ReasonFreshnessUnknown: the freshness query has no valid answer, so that the
	// metric is invalid; or none yet that is as new as the sample, which then can be
	// used to scale up only.
	ReasonFreshnessUnknown = "FreshnessUnknown"
	// ReasonFutureSample: the sample lies more than MaxClockSkew ahead of the
	// operator's clock, so that its age cannot be known.
	ReasonFutureSample = "FutureSample"
	// ReasonUnexpectedResultType: the result is neither a vector nor a scalar, or it
	// is a scalar where series for many targets are asked for.
	ReasonUnexpectedResultType = "UnexpectedResultType"
	// ReasonPartialResponse: the server warned that the answer is incomplete.
	// The sample can be used to scale up only.
	ReasonPartialResponse = "PartialResponse"

	// ReasonTimeout: there was no complete answer within the query's timeout,
	// or the server gave up the query after its own.
	ReasonTimeout = "Timeout"
	// ReasonCanceled: the caller gave up before there was an answer.
	ReasonCanceled = "Canceled"
	// ReasonUnreachable: no connection, or it broke before the answer was whole.
	ReasonUnreachable = "Unreachable"
	// ReasonUnauthorized: the server refused the endpoint's credentials (401, 403).
	ReasonUnauthorized = "Unauthorized"
	// ReasonCredentialsUnreadable: a credential or certificate file of the
	// endpoint cannot be read.
	ReasonCredentialsUnreadable = "CredentialsUnreadable"
	// ReasonQueryRejected: the server refused or could not execute the query.
	ReasonQueryRejected = "QueryRejected"
	// ReasonRateLimited: the server asks for fewer queries (429).
	ReasonRateLimited = "RateLimited"
	// ReasonServerError: the server failed (5xx).
	ReasonServerError = "ServerError"
	// ReasonUnexpectedStatus: the server answered with another HTTP status.
	ReasonUnexpectedStatus = "UnexpectedStatus"
	// ReasonRedirected: the server redirects to another address; that is not
	// followed, as the credentials are meant for this one.
	ReasonRedirected = "Redirected"
	// ReasonBadResponse: the answer is not one of the Prometheus HTTP API.
	ReasonBadResponse = "BadResponse"
	// ReasonTooManySeries: the answer has more series than the profile allows.
	ReasonTooManySeries = "TooManySeries"
	// ReasonResponseTooLarge: the answer exceeds the profile's maxResponseBytes or the
	// endpoint's max_response_bytes.
	ReasonResponseTooLarge = "ResponseTooLarge"
	// ReasonUnknownEndpoint: the operator's configuration has no such endpoint.
	ReasonUnknownEndpoint = "UnknownEndpoint"
)
