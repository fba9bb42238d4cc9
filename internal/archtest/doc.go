// Package archtest holds the module to its own rules: which package may import
// which, and a few habits that no compiler checks. It reads every Go file of
// the module, whatever its build constraints, so that a file for another
// system is judged too. It has tests only.
//
// A rule that must be broken is changed here, in the commit that breaks it and
// with the reason; there are no exceptions by comment.
package archtest
