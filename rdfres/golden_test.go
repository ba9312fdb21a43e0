package rdfres

// Digests of the components of TestNamesAreStable. A change of them renames
// the blank nodes in every mirror.
const (
	goldenLeaf  = "bbde8893a94ccb208985d2829fefe600e94229ab255758451c1fa1c5318660cb"
	goldenTree  = "f9ff287f3a42e65564fa22cc6a2ed648c7578f2d273b97b8d6f8b441b48bafe2"
	goldenCycle = "59898659505eb60d2420c9ee140290fa32144aaaac594670cf56dc431c5e6d96"
	goldenTies  = "7bf2dd4501487134d3cb9cb3b76661d43c41075fddb0bf0261fc451e9518e3e4"
)

const (
	termFirst Term = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#first>"
	termRest  Term = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#rest>"
	termNil   Term = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#nil>"
)
